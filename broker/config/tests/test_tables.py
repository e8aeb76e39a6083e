"""Kafka's tables of settings, and ours."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trilogue.broker.config import (
    ConfigError,
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
from trilogue.broker.config.setting import Setting, Type
from trilogue.broker.config.tables import own, zookeeper
from trilogue.broker.config.values import read, written

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
