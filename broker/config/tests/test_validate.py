"""What topics, groups, subscriptions and brokers may not be set to, in Kafka's words."""

import pytest

from trilogue.broker.config import (
    BrokerConfig,
    validate_broker_config,
    validate_client_metrics_config,
    validate_group_config,
    validate_topic_config,
)
from trilogue.wire.errors import BrokerError, ErrorCode


class TestValidate:
    @pytest.mark.parametrize(
        ("overrides", "message"),
        [
            ({"foo": "1"}, "Unknown topic config name: foo"),
            ({"retention.ms": "x", "foo": "1"}, "Unknown topic config name: foo"),
            ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
            ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
            ({"retention.ms": "-2"}, "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
            (
                {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
                "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
            ),
            (
                {"remote.storage.enable": "true"},
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage.",
            ),
        ],
    )
    def test_topics(self, overrides, message):
        assert refusal(validate_topic_config, overrides) == (ErrorCode.INVALID_CONFIG, message)

    def test_a_topic_may_be_good(self):
        validate_topic_config({"retention.ms": "-1", "cleanup.policy": "", "internal.segment.bytes": "100"})

    @pytest.mark.parametrize(
        ("overrides", "message"),
        [
            ({"foo": "1"}, "Unknown group config name: foo"),
            (
                {"consumer.session.timeout.ms": "44999"},
                "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
            ),
            (
                {"share.record.lock.duration.ms": "60001"},
                "share.record.lock.duration.ms must be less than or equal to group.share.max.record.lock.duration.ms",
            ),
            (
                {"streams.num.standby.replicas": "3"},
                "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
            ),
        ],
    )
    def test_groups(self, overrides, message):
        assert refusal(validate_group_config, overrides) == (ErrorCode.INVALID_CONFIG, message)

    def test_a_group_may_go_to_its_bounds(self):
        validate_group_config({"consumer.session.timeout.ms": "45000", "streams.num.standby.replicas": "2"})
        validate_group_config({"consumer.session.timeout.ms": "60000", "share.record.lock.duration.ms": "60000"})

    @pytest.mark.parametrize(
        ("overrides", "code", "message"),
        [
            ({"foo": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: foo"),
            (
                {"interval.ms": "99"},
                ErrorCode.INVALID_REQUEST,
                "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            ),
            ({"match": "foo=a"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: foo=a"),
            ({"match": "client_id=("}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=("),
            ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=a=b"),
        ],
    )
    def test_client_metrics(self, overrides, code, message):
        assert refusal(validate_client_metrics_config, overrides) == (code, message)

    def test_client_metrics_may_be_good(self):
        validate_client_metrics_config(
            {"interval.ms": "100", "metrics": "*", "match": "client_id=a.*, client_source_port=1"}
        )

    @pytest.mark.parametrize(
        ("overrides", "message"),
        [
            (
                {"num.partitions": "2", "node.id": "3"},
                "Cannot update these configs dynamically: [node.id, num.partitions]",
            ),
            (
                {"ssl.keystore.location": "/x"},
                "These security configs can be dynamically updated only per-listener "
                "using the listener prefix: [ssl.keystore.location]",
            ),
            (
                {"log.retention.ms": "x"},
                "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
            ),
            ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
            (
                {"group.consumer.assignment.interval.ms": "20000"},
                "group.consumer.assignment.interval.ms must be less than or equal to "
                "group.consumer.max.assignment.interval.ms",
            ),
        ],
    )
    def test_brokers(self, overrides, message):
        config = BrokerConfig.parse({})
        assert refusal(validate_broker_config, overrides, config) == (ErrorCode.INVALID_REQUEST, message)

    def test_some_settings_are_for_one_broker_only(self):
        config, overrides = BrokerConfig.parse({}), {"listener.name.a.ssl.keystore.location": "/x"}
        validate_broker_config(overrides, config)
        assert refusal(validate_broker_config, overrides, config, True) == (
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[listener.name.a.ssl.keystore.location]",
        )

    def test_a_setting_that_nobody_knows_may_be_a_plugins(self):
        validate_broker_config({"foo.bar": "1"}, BrokerConfig.parse({}), for_all=True)


def refusal(validate, *args) -> tuple[ErrorCode, str | None]:
    with pytest.raises(BrokerError) as caught:
        validate(*args)
    return caught.value.code, caught.value.message
