"""What DescribeConfigs tells of settings: their values, and where those come from."""

import pytest

from trilogue.broker.config import (
    BrokerConfig,
)
from trilogue.broker.config.describe import (
    Source,
    Synonym,
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from trilogue.broker.config.doubles import written_double
from trilogue.broker.config.setting import Type
from trilogue.broker.config.tables import own


class TestDescribe:
    def test_a_topic_lists_all_that_kafka_lists(self):
        assert len(list(describe_topic(BrokerConfig.parse({}).topic({})))) == 33

    def test_a_topic_says_where_a_value_comes_from(self):
        broker = BrokerConfig.parse({"log.cleanup.policy": "compact"}).with_dynamic(
            {"log.cleanup.policy": "delete"}, {}
        )
        entries = {each.name: each for each in describe_topic(broker.topic({"cleanup.policy": "compact , delete"}))}
        policy = entries["cleanup.policy"]
        assert (policy.value, policy.source, policy.type, policy.read_only) == (
            "compact,delete",
            Source.TOPIC,
            Type.LIST,
            False,
        )
        assert policy.synonyms == (
            Synonym("cleanup.policy", "compact,delete", Source.TOPIC),
            Synonym("log.cleanup.policy", "delete", Source.ALL_BROKERS),
            Synonym("log.cleanup.policy", "compact", Source.STATIC),
            Synonym("log.cleanup.policy", "delete", Source.DEFAULT),
        )

    def test_an_internal_setting_is_listed_once_it_is_set(self):
        broker = BrokerConfig.parse({})
        assert "internal.segment.bytes" not in [each.name for each in describe_topic(broker.topic({}))]
        entries = {each.name: each.value for each in describe_topic(broker.topic({"internal.segment.bytes": "9"}))}
        assert entries["internal.segment.bytes"] == "9"

    def test_a_coarser_unit_hides_behind_the_finer_one_as_in_kafka(self):
        hours = BrokerConfig.parse({"log.retention.hours": "1"})
        assert retention(hours) == ("3600000", Source.DEFAULT, ())
        assert retention(hours.with_dynamic({}, {"log.retention.ms": "1000"})) == (
            "1000",
            Source.BROKER,
            (
                Synonym("log.retention.ms", "1000", Source.BROKER),
                Synonym("log.retention.hours", "1", Source.STATIC),
                Synonym("log.retention.hours", "168", Source.DEFAULT),
            ),
        )

    def test_a_broker_lists_all_that_kafka_lists_and_ours(self):
        entries = list(describe_broker(BrokerConfig.parse({})))
        assert len(entries) == 340 + len(own.SETTINGS)
        assert [each.name for each in entries if each.source is not Source.DEFAULT] == []
        assert {each.name for each in entries if each.value is not None and each.sensitive} == set()

    def test_a_broker_shows_neither_passwords_nor_what_might_be_one(self):
        config = BrokerConfig({"listener.name.a.ssl.key.password": "x", "config.providers.v.token": "y"}, {}, {})
        entries = {each.name: each for each in describe_broker(config)}
        password, strange = entries["listener.name.a.ssl.key.password"], entries["config.providers.v.token"]
        assert (password.value, password.type, password.sensitive) == (None, Type.PASSWORD, True)
        assert password.synonyms == (Synonym("listener.name.a.ssl.key.password", None, Source.STATIC),)
        assert (strange.value, strange.type, strange.sensitive, strange.read_only) == (None, None, True, True)

    def test_null_is_no_synonym(self):
        entries = {each.name: each for each in describe_broker(BrokerConfig.parse({}))}
        assert (entries["broker.rack"].value, entries["broker.rack"].synonyms) == (None, ())

    def test_all_brokers_list_only_what_was_set(self):
        config = BrokerConfig.parse({"log.segment.bytes": "2000000"}).with_dynamic({"log.cleaner.threads": " 2 "}, {})
        assert [(each.name, each.value, each.source, each.read_only) for each in describe_all_brokers(config)] == [
            ("log.cleaner.threads", " 2 ", Source.ALL_BROKERS, False)
        ]

    def test_a_group_is_spoken_for_by_its_broker(self):
        config = BrokerConfig.parse({"group.consumer.session.timeout.ms": "50000"})
        entries = {each.name: each for each in describe_group(config, {"share.isolation.level": "read_committed"})}
        assert len(entries) == 17
        assert entries["consumer.session.timeout.ms"].synonyms == (
            Synonym("group.consumer.session.timeout.ms", "50000", Source.STATIC),
            Synonym("group.consumer.session.timeout.ms", "45000", Source.DEFAULT),
        )
        assert entries["share.isolation.level"].synonyms == (
            Synonym("share.isolation.level", "read_committed", Source.GROUP),
            Synonym("share.isolation.level", "read_uncommitted", Source.DEFAULT),
        )

    def test_client_metrics(self):
        entries = {each.name: each for each in describe_client_metrics({"metrics": "a"})}
        assert [(each.value, each.source) for each in entries.values()] == [
            ("a", Source.CLIENT_METRICS),
            ("300000", Source.DEFAULT),
            ("", Source.DEFAULT),
        ]


def retention(broker: BrokerConfig):
    entry = next(each for each in describe_topic(broker.topic({})) if each.name == "retention.ms")
    return entry.value, entry.source, entry.synonyms


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (-2.0, "-2.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123456789.5, "-1.234567895E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value, text):
    assert written_double(value) == text
