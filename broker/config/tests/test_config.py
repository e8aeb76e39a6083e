"""Settings: what becomes of what people write."""

import pytest

from trilogue.broker.config import (
    DEVELOPMENT,
    BrokerConfig,
    ConfigError,
)
from trilogue.broker.config.unheeded import OPEN_TO_ALL
from trilogue.storage.config import DAY_MS, HOUR_MS, LogConfig
from trilogue.wire.compression import Codec


class TestParse:
    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            ("num.partitions", " 3 ", 3),
            ("num.partitions", "0" * 5000 + "3", 3),
            ("auto.create.topics.enable", "False", False),
            ("log.cleaner.min.cleanable.ratio", "0.25", 0.25),
            ("log.dirs", "/a, /b", ["/a", "/b"]),
            ("log.cleanup.policy", "compact,delete,compact", ["compact", "delete"]),
            ("broker.rack", " r1", "r1"),
            ("listener.name.internal.ssl.client.auth", "none", "none"),
            ("listener.name.internal.plain.sasl.jaas.config", "x", "x"),
            ("listener.name.internal.plugins.own", "x", "x"),
            ("config.providers.file.class", "x.Y", "x.Y"),
        ],
    )
    def test_a_value_has_its_type(self, name, text, value):
        assert BrokerConfig.parse({name: text})[name] == value

    @pytest.mark.parametrize(
        ("name", "text", "line"),
        [
            ("num.partitions", "abc", "num.partitions=abc: not a whole number; it has to be at least 1"),
            ("num.partitions", "0", "num.partitions=0: it has to be at least 1"),
            ("num.partitions", "3000000000", "num.partitions=3000000000: too large a number; it has to be at least 1"),
            ("log.retention.ms", "9" * 5000, f"log.retention.ms={'9' * 5000}: too large a number"),
            ("auto.create.topics.enable", "yes", "auto.create.topics.enable=yes: neither true nor false"),
            ("auto.create.topics.enable", "1", "auto.create.topics.enable=1: neither true nor false"),
            ("log.cleaner.io.max.bytes.per.second", "x", "log.cleaner.io.max.bytes.per.second=x: not a number"),
            ("compression.lz4.level", "18", "compression.lz4.level=18: it has to be from 1 to 17"),
            (
                "compression.type",
                "brotli",
                "compression.type=brotli: it has to be one of uncompressed, zstd, lz4, snappy, gzip, producer",
            ),
            ("num.partition", "1", "num.partition: there is no such setting; did you mean num.partitions?"),
            ("zzz", "1", "zzz: there is no such setting"),
            (
                "listener.name.x.max.connections",
                "x",
                "listener.name.x.max.connections=x: not a whole number; it has to be at least 0",
            ),
            ("super.users", "User:a", f"super.users {OPEN_TO_ALL}"),
            ("authorizer.class.name", "x.Y", f"authorizer.class.name {OPEN_TO_ALL}"),
            ("ssl.client.auth", "required", f"ssl.client.auth {OPEN_TO_ALL}"),
            ("ssl.clinet.auth", "x", "ssl.clinet.auth: there is no such setting; did you mean ssl.client.auth?"),
            (
                "listener.name.internal.ssl.client.auth",
                "required",
                f"listener.name.internal.ssl.client.auth {OPEN_TO_ALL}",
            ),
            (
                "sasl.jaas.config",
                "x",
                "sasl.jaas.config counts only as listener.name.LISTENER.MECHANISM.sasl.jaas.config, "
                "both in small letters",
            ),
            (
                "process.roles",
                "controller",
                "process.roles=controller: brokers have no controllers of their own here; leave this one out",
            ),
            (
                "controller.quorum.voters",
                "1@a:1,2@b:1,3@c:1",
                "controller.quorum.voters has 3 members: several brokers need zookeeper.connect (--zookeeper)",
            ),
            ("log.retention.hours", "0", "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ],
    )
    def test_a_mistake_is_told_in_one_line(self, name, text, line):
        with pytest.raises(ConfigError) as caught:
            BrokerConfig.parse({name: text})
        assert str(caught.value) == line

    def test_nothing_is_set_by_default(self):
        config = BrokerConfig.parse({})
        assert (config["num.partitions"], config["log.dirs"], config["node.id"]) == (1, None, 1)

    def test_a_name_that_is_no_setting_has_no_value(self):
        with pytest.raises(KeyError):
            BrokerConfig.parse({})["zzz"]

    def test_node_id_and_broker_id_are_one(self):
        assert BrokerConfig.parse({"node.id": "5"})["broker.id"] == 5
        assert BrokerConfig.parse({"broker.id": "5"})["node.id"] == 5

    def test_the_development_profile_suits_one_broker(self):
        config = BrokerConfig.parse(DEVELOPMENT)
        assert all(config[name] == int(text) for name, text in DEVELOPMENT.items())


class TestDynamic:
    def test_one_broker_goes_before_all_and_all_before_the_file(self):
        file = BrokerConfig.parse({"log.segment.bytes": "2000000"})
        everybody = file.with_dynamic({"log.segment.bytes": "3000000"}, {})
        own = file.with_dynamic({"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
        assert [each["log.segment.bytes"] for each in (file, everybody, own)] == [2000000, 3000000, 4000000]
        assert own.with_dynamic({}, {})["log.segment.bytes"] == 2000000

    def test_what_cannot_be_taken_over_is_left_out(self):
        config = BrokerConfig.parse({}).with_dynamic(
            {"num.partitions": "7", "ssl.keystore.location": "/x", "listeners": "A://:1", "log.cleaner.threads": "2"},
            {"log.segment.bytes": "nonsense", "plugin.setting": "x"},
        )
        assert (config.cluster, config.own) == ({"log.cleaner.threads": "2"}, {"plugin.setting": "x"})
        assert (config["num.partitions"], config["log.cleaner.threads"]) == (1, 2)


class TestTopic:
    def test_a_topic_without_settings_is_as_the_storage_has_it(self):
        assert BrokerConfig.parse({}).topic({}).log_config() == LogConfig()

    def test_a_topic_goes_before_its_broker(self):
        broker = BrokerConfig.parse({"log.segment.bytes": "2000000", "message.max.bytes": "5000"})
        topic = broker.topic({"segment.bytes": "3000000", "cleanup.policy": "compact"})
        assert [topic[name] for name in ("segment.bytes", "max.message.bytes", "cleanup.policy")] == [
            3000000,
            5000,
            ["compact"],
        ]

    @pytest.mark.parametrize(
        ("broker", "retention_ms"),
        [
            ({}, 7 * DAY_MS),
            ({"log.retention.hours": "1"}, HOUR_MS),
            ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
            ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
            ({"log.retention.hours": "-1"}, -1),
            ({"log.retention.ms": "-5"}, -1),
        ],
    )
    def test_the_finest_unit_wins(self, broker, retention_ms):
        assert BrokerConfig.parse(broker).topic({})["retention.ms"] == retention_ms

    def test_a_flush_is_due_when_the_broker_looks_if_nobody_says_otherwise(self):
        assert BrokerConfig.parse({"log.flush.scheduler.interval.ms": "9"}).topic({})["flush.ms"] == 9
        assert BrokerConfig.parse({"log.flush.interval.ms": "8"}).topic({})["flush.ms"] == 8

    @pytest.mark.parametrize(
        ("word", "codec"), [("producer", None), ("uncompressed", Codec.NONE), ("gzip", Codec.GZIP), ("lz4", Codec.LZ4)]
    )
    def test_compression_by_name(self, word, codec):
        assert BrokerConfig.parse({}).topic({"compression.type": word}).log_config().compression is codec

    def test_what_the_log_is_told(self):
        told = {
            "internal.segment.bytes": "100",
            "message.timestamp.type": "LogAppendTime",
            "cleanup.policy": "compact,delete",
            "retention.bytes": "5",
        }
        assert BrokerConfig.parse({}).topic(told).log_config(jitter_ms=3) == LogConfig(
            segment_bytes=100,
            segment_jitter_ms=3,
            log_append_time=True,
            compact=True,
            delete=True,
            retention_bytes=5,
        )
