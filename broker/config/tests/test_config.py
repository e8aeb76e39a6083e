"""Settings: ours against Kafka's own tables, and what becomes of what people write."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trilogue.broker.config import (
    DEVELOPMENT,
    BrokerConfig,
    ConfigError,
    validate_broker_config,
    validate_client_metrics_config,
    validate_group_config,
    validate_topic_config,
)
from trilogue.broker.config.catalog import (
    BROKER,
    CLIENT_METRICS,
    COARSER,
    GROUP,
    ONLY_DYNAMIC,
    TOPIC,
    TOPIC_SYNONYMS,
    broker_synonyms,
    group_synonym,
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
from trilogue.broker.config.setting import Setting, Type
from trilogue.broker.config.tables import own, zookeeper
from trilogue.broker.config.unheeded import OPEN_TO_ALL
from trilogue.broker.config.values import read, written
from trilogue.storage.config import DAY_MS, HOUR_MS, LogConfig
from trilogue.wire.compression import Codec
from trilogue.wire.errors import BrokerError, ErrorCode

SETTINGS = Path(__file__).parent / "java" / "Settings.java"

TABLES = {
    "broker": BROKER,
    "only-dynamic": ONLY_DYNAMIC,
    "topic": TOPIC,
    "group": GROUP,
    "client-metrics": CLIENT_METRICS,
}
OURS = [*own.SETTINGS, *zookeeper.SETTINGS]
"""What Kafka 4 does not have."""
EVERY = [(kind, setting) for kind, table in TABLES.items() for setting in table.values() if setting not in OURS]


class TestAgainstKafka:
    """Kafka's own ConfigDefs, asked without starting anything."""

    pytestmark = pytest.mark.java

    def test_every_setting_is_as_kafka_has_it(self, java):
        kafkas = [json.loads(line) for line in ask(java)]

        assert {(each["kind"], each["name"]) for each in kafkas} == {(kind, each.name) for kind, each in EVERY}
        for each in kafkas:
            setting = TABLES[each["kind"]][each["name"]]
            ours = {
                "type": setting.type.name,
                "default": written(setting.type, setting.default),
                "validator": setting.rule.kafkas if setting.rule else None,
                "internal": setting.internal,
                "required": setting.required,
                "synonyms": synonyms(each["kind"], each["name"]),
            }
            if each["required"]:
                ours["default"] = None
            if each["kind"] in ("broker", "only-dynamic"):
                ours["mode"] = setting.mode.value
            assert ours == {key: each[key] for key in ours}, each["name"]

    def test_every_setting_takes_and_refuses_what_kafka_does(self, java):
        asked = [(kind, setting, text) for kind, setting in EVERY for text in samples(setting) if kind in KINDS_TO_TRY]
        answers = ask(java, "try", lines="\n".join(f"{kind}\t{each.name}\t{text}" for kind, each, text in asked))

        different = [
            f"{setting.name}={text!r}: Kafka says {kafkas}, we {ours}"
            for (_, setting, text), answer in zip(asked, answers, strict=True)
            if (ours := outcome(setting, text)) != (kafkas := json.loads(answer)) and not is_worded_otherwise(setting)
        ]
        assert not different


KINDS_TO_TRY = ("broker", "topic", "group", "client-metrics")


def ask(java, *args: str, lines: str = "") -> list[str]:
    done = subprocess.run(
        java("kafka-4.3.1", str(SETTINGS), *args), input=lines, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def synonyms(kind: str, name: str) -> list[str]:
    if kind == "topic":
        synonym = TOPIC_SYNONYMS.get(name)
        return [synonym, *COARSER.get(synonym, ())] if synonym else []
    if kind == "group":
        synonym = group_synonym(name)
        return [synonym] if synonym else []
    return [] if kind == "client-metrics" else broker_synonyms(name)


def samples(setting: Setting) -> list[str]:
    """What people might write, and both sides of every bound."""
    words = {
        "",
        "abc",
        " a , b ",
        "a,a,b",
        "a,,b",
        ",",
        "true",
        " TRUE ",
        "yes",
        "1.5",
        ".5",
        "NaN",
        "1e3",
        "0x10",
        "+7",
    }
    words |= {"-3", "-2", "-1", "0", "1", "2", " 7 ", "1_0", "0:1,1:2", "*", "by_duration:PT1H", "by_duration:P1W"}
    words |= {str(2**bits + off) for bits in (15, 31, 63) for off in (-1, 0)}
    if setting.rule:
        numbers = [int(part) for part in setting.rule.kafkas.strip("[]").split(",") if part.lstrip("-").isdigit()]
        words |= {str(number + off) for number in numbers for off in (-1, 0, 1)}
        words |= {word for part in setting.rule.kafkas.split("[")[-1:] for word in part.strip("]").split(", ")}
    if setting.type is Type.CLASS:
        return []  # Kafka would load them
    if setting.type is Type.DOUBLE:
        words -= {"0x10"}  # Java reads it as a number in hexadecimal; we do not
    return sorted(words)


def outcome(setting: Setting, text: str) -> dict[str, str | None]:
    try:
        value = read(setting, text)
    except ConfigError as error:
        return {"refused": error.kafkas}
    return {"text": "[hidden]" if setting.sensitive else written(setting.type, value)}


def is_worded_otherwise(setting: Setting) -> bool:
    """Addresses of controllers: Kafka has a sentence for each way to get them wrong."""
    return setting.name.startswith("controller.quorum.") and setting.type is Type.LIST


class TestTables:
    @pytest.mark.parametrize("kind", TABLES)
    def test_every_setting_is_explained_in_a_sentence(self, kind):
        for setting in TABLES[kind].values():
            assert setting.doc[0].isupper(), setting.name
            assert setting.doc.endswith("."), setting.name
            assert ". " not in setting.doc, setting.name

    def test_every_default_is_a_value_that_could_be_set(self):
        for _, setting in EVERY:
            if setting.default is not None and not setting.sensitive:
                assert read(setting, written(setting.type, setting.default)) == setting.default

    def test_loading_them_brings_nothing_heavy(self):
        code = "import sys, trilogue.broker.config as c; c.BrokerConfig.parse({}); print(*sys.modules)"
        loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
        assert not loaded & {"trio", "construct", "msgspec", "cramjam", "dataclasses", "inspect", "difflib", "decimal"}


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
