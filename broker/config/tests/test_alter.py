"""What settings become when they are altered, and why they may not: every answer is one that Kafka 4.3.1 gave."""

from collections.abc import Mapping

import pytest

from trilogue.broker.cluster.image import Image, Topic
from trilogue.broker.config import BrokerConfig
from trilogue.broker.config.alter import Asked, Change, OpType, ResourceType, Scene, decide, objections
from trilogue.wire.errors import BrokerError, ErrorCode

SET, DELETE, APPEND, SUBTRACT = OpType
TOPIC, BROKER, LOGGER, METRICS, GROUP = ResourceType


def scene(configs: Mapping[tuple[str, str], Mapping[str, str]] | None = None, **static: str) -> Scene:
    """Broker 1 with the topic `t`."""
    broker = BrokerConfig.parse({name.replace("_", "."): text for name, text in static.items()})
    topics = {"t": Topic("t", b"\1" * 16, ())}
    image = Image(topics=topics, configs=configs or {})
    own, everybody = image.config("brokers", "1"), image.config("brokers", "<default>")
    return Scene(1, broker, broker.with_dynamic(everybody, own), image)


def topic(*changes: tuple[str, int, str | None], name: str = "t", replace: bool = False) -> Asked:
    return Asked(TOPIC, name, [Change(*each) for each in changes], replace)


def broker(*changes: tuple[str, int, str | None], name: str = "1", replace: bool = False) -> Asked:
    return Asked(BROKER, name, [Change(*each) for each in changes], replace)


def refusal(asked: Asked, at: Scene | None = None) -> tuple[ErrorCode, str | None]:
    with pytest.raises(BrokerError) as caught:
        decide(at or scene(), asked)
    return caught.value.code, caught.value.message


class TestObjections:
    def test_a_resource_named_twice_is_refused_each_time(self):
        asked = [topic(("retention.ms", SET, "1")), topic(), topic(name="u")]
        twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        assert [error and (error.code, error.message) for error in objections(asked)] == [twice, twice, None]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], "Error due to duplicate config keys"),
            (
                [("retention.ms", SET, None), ("cleanup.policy", APPEND, None)],
                "Null value not supported for : retention.ms, cleanup.policy",
            ),
        ],
    )
    def test_a_change_is_said_once_and_says_something(self, changes, message):
        [error] = objections([topic(*changes)])
        assert error is not None
        assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, message)

    def test_nothing_need_be_said_to_unset(self):
        assert list(objections([topic(("retention.ms", DELETE, None))])) == [None]


class TestTopics:
    def test_changes_leave_the_rest_alone(self):
        at = scene({("topics", "t"): {"retention.ms": "1", "segment.ms": "2"}})
        asked = topic(("retention.ms", SET, "5"), ("flush.ms", SET, "6"), ("segment.ms", DELETE, None))
        assert decide(at, asked) == (("topics", "t"), {"retention.ms": "5", "flush.ms": "6"})

    def test_a_replacement_does_not(self):
        at = scene({("topics", "t"): {"retention.ms": "1", "segment.ms": "2"}})
        assert decide(at, topic(("flush.ms", SET, "6"), replace=True)) == (("topics", "t"), {"flush.ms": "6"})
        assert decide(at, topic(replace=True)) == (("topics", "t"), {})

    def test_to_unset_what_is_not_set_or_not_known_is_fine(self):
        assert decide(scene(), topic(("retention.ms", DELETE, None), ("foo", DELETE, None)))[1] == {}

    @pytest.mark.parametrize(
        ("before", "operation", "value", "after"),
        [
            (None, APPEND, "compact", "delete,compact"),
            ("delete,compact", APPEND, "compact,delete", "delete,compact"),
            ("delete,compact", SUBTRACT, "delete", "compact"),
            ("compact", SUBTRACT, "compact", ""),
            ("", APPEND, "delete", "delete"),
            ("delete , compact", SUBTRACT, "compact", "delete , compact"),
            (None, SUBTRACT, "delete", ""),
        ],
    )
    def test_lists(self, before, operation, value, after):
        at = scene({("topics", "t"): {"cleanup.policy": before}} if before is not None else {})
        assert decide(at, topic(("cleanup.policy", operation, value)))[1] == {"cleanup.policy": after}

    def test_a_list_that_is_not_set_begins_as_the_file_has_it(self):
        at = scene({("brokers", "1"): {"log.cleanup.policy": "delete"}}, log_cleanup_policy="compact")
        assert decide(at, topic(("cleanup.policy", APPEND, "delete")))[1] == {"cleanup.policy": "compact,delete"}

    @pytest.mark.parametrize(
        ("asked", "code", "message"),
        [
            (
                topic(("retention.ms", SET, "1"), name="nope"),
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "The topic 'nope' does not exist.",
            ),
            (
                topic(("retention.ms", SET, "x"), name="nope"),
                ErrorCode.INVALID_CONFIG,
                "Invalid value x for configuration retention.ms: Not a number of type LONG",
            ),
            (topic(name=""), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
            (topic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
            (topic(("foo", SET, "1")), ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
            (
                topic(("retention.ms", APPEND, "1")),
                ErrorCode.INVALID_CONFIG,
                "Can't APPEND to key retention.ms because its type is not LIST.",
            ),
            (
                topic(("foo", SUBTRACT, "1"), name=""),
                ErrorCode.INVALID_CONFIG,
                "Can't SUBTRACT to key foo because its type is not LIST.",
            ),
            (topic(("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        ],
    )
    def test_refusals(self, asked, code, message):
        assert refusal(asked) == (code, message)

    def test_old_settings_are_checked_together_with_new_ones(self):
        at = scene({("topics", "t"): {"min.compaction.lag.ms": "10"}})
        assert refusal(topic(("max.compaction.lag.ms", SET, "5")), at) == (
            ErrorCode.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        )


class TestBrokers:
    @pytest.mark.parametrize(("name", "stored"), [("1", "1"), ("01", "1"), ("", "<default>")])
    def test_where_they_are_stored(self, name, stored):
        asked = broker(("log.cleaner.threads", SET, "2"), name=name)
        assert decide(scene(), asked) == (("brokers", stored), {"log.cleaner.threads": "2"})

    def test_lists_begin_with_the_brokers_own_setting(self):
        asked = broker(("log.cleanup.policy", APPEND, "compact"))
        assert decide(scene(), asked)[1] == {"log.cleanup.policy": "delete,compact"}

    @pytest.mark.parametrize(
        ("asked", "code", "message"),
        [
            (broker(name="7"), ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 7"),
            (broker(name="abc"), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: abc"),
            (
                broker(("num.partitions", SET, "2"), name=""),
                ErrorCode.INVALID_REQUEST,
                "Cannot update these configs dynamically: [num.partitions]",
            ),
            (
                broker(("log.retention.ms", SUBTRACT, "2")),
                ErrorCode.INVALID_CONFIG,
                "Config value subtract is not allowed for config key: log.retention.ms",
            ),
            (broker(("foo.x", APPEND, "2")), ErrorCode.INVALID_CONFIG, "Unknown config name: foo.x"),
            (broker(("log.retention.ms", 9, "2")), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        ],
    )
    def test_refusals(self, asked, code, message):
        assert refusal(asked) == (code, message)


class TestOthers:
    def test_a_group_need_not_exist(self):
        asked = Asked(GROUP, "g", [Change("consumer.session.timeout.ms", SET, "50000")])
        assert decide(scene(), asked) == (("groups", "g"), {"consumer.session.timeout.ms": "50000"})

    def test_the_bounds_of_a_group_are_its_brokers(self):
        asked = Asked(GROUP, "g", [Change("consumer.session.timeout.ms", SET, "70000")])
        decide(scene(group_consumer_max_session_timeout_ms="70000"), asked)
        assert refusal(asked) == (
            ErrorCode.INVALID_CONFIG,
            "consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms",
        )

    def test_a_metrics_subscription(self):
        asked = Asked(METRICS, "m", [Change("interval.ms", SET, "5000")])
        assert decide(scene(), asked) == (("client-metrics", "m"), {"interval.ms": "5000"})

    @pytest.mark.parametrize(
        ("asked", "code", "message"),
        [
            (Asked(GROUP, "", []), ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
            (Asked(METRICS, "", []), ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
            (
                Asked(METRICS, "m", [Change("metrics", APPEND, "a")]),
                ErrorCode.INVALID_CONFIG,
                "Can't APPEND to key metrics because its type is not LIST.",
            ),
            (Asked(LOGGER, "1", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
            (Asked(77, "1", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 77"),
        ],
    )
    def test_refusals(self, asked, code, message):
        assert refusal(asked) == (code, message)
