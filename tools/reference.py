"""Writes docs/configuration.md and docs/protocol.md from what the code says, so that they are true.

    python3 tools/reference.py            write them
    python3 tools/reference.py --check    exit 1 if they are not what would be written

A setting has an effect if its name stands in the code outside of the tables that declare it.
"""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

from trilogue.broker.config.catalog import BROKER, COARSER, GROUP, TOPIC, TOPIC_SYNONYMS
from trilogue.broker.config.setting import Setting
from trilogue.broker.config.tables import zookeeper
from trilogue.broker.requests import registry

ROOT = Path(__file__).resolve().parents[1]
MARK = "\u2713"
CODE = ["broker", "storage", "cli", "testing"]
SIMULATION = ROOT / "testing" / "simulation"
"""It gives settings to brokers, and obeys none."""
DECLARATIONS = {"tables", "tests"}
NOT_USE = {
    "catalog.py",
    "modes.py",
    "rules.py",
    "together.py",
    "unheeded.py",
    "doubles.py",
    "validate.py",
    "describe.py",
    "alter.py",
}
"""Of broker/config: they name settings to describe and check them, not to obey them."""


def main(arguments: list[str]) -> int:
    stale = [path for path, text in documents().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not up to date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in documents().items():
        path.write_text(text)
    return 0


def documents() -> dict[Path, str]:
    return {ROOT / "docs" / "configuration.md": configuration(), ROOT / "docs" / "protocol.md": protocol()}


# -- settings --------------------------------------------------------------------------------------


def named_in_code() -> set[str]:
    """Every text in the code: names of settings among them."""
    found: set[str] = set()
    for folder in CODE:
        for path in sorted(set((ROOT / folder).rglob("*.py")) - set(SIMULATION.rglob("*.py"))):
            inside = path.relative_to(ROOT)
            if DECLARATIONS & set(inside.parts) or (inside.parts[1:2] == ("config",) and path.name in NOT_USE):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    return found


def obeyed() -> set[str]:
    named = named_in_code()
    topics = {name for name in TOPIC if name in named}
    # A broker's setting speaks for its topics, or for the same in finer units.
    brokers = {name for name in BROKER if name in named} | {
        TOPIC_SYNONYMS[name] for name in topics if name in TOPIC_SYNONYMS
    }
    brokers |= {coarse for name in brokers for coarse in COARSER.get(name, ())}
    # Coordinators' topics are made with settings of their own, named by a prefix.
    made = ("offsets.topic.", "transaction.state.log.")
    brokers |= {
        name
        for name in BROKER
        if name.startswith(made) and name.endswith(("num.partitions", "replication.factor", "segment.bytes", "min.isr"))
    }
    return topics | brokers | {name for name in GROUP if name in named}


def configuration() -> str:
    working = obeyed()
    lines = [
        "# Settings",
        "",
        "Made by `make docs`.  Names, types and defaults are Apache Kafka 4.3.1's.  All are known, validated and",
        f"reported; those marked {MARK} do something in this broker, the others are accepted and have no effect (yet).",
        "",
    ]
    tables = {
        "Topics": [setting for setting in TOPIC.values() if not setting.internal],
        "Brokers": [setting for setting in BROKER.values() if not setting.internal],
        "Groups": [setting for setting in GROUP.values() if not setting.internal],
        "ZooKeeper (Kafka 3's)": zookeeper.SETTINGS,
    }
    for title, shown in tables.items():
        count = sum(setting.name in working for setting in shown)
        lines += [f"## {title}", "", f"{count} of {len(shown)} do something.", ""]
        lines += ["| | name | type | default | what it says |", "| --- | --- | --- | --- | --- |"]
        lines += rows(shown, working)
        lines.append("")
    return "\n".join(lines)


def rows(settings: Iterable[Setting], working: set[str]) -> list[str]:
    return [
        f"| {MARK if each.name in working else ''} | `{each.name}` | {each.type.name.lower()} "
        f"| {shown_default(each)} | {each.doc} |".replace("|  |", "| |")
        for each in sorted(settings)
    ]


def shown_default(setting: Setting) -> str:
    value = setting.default
    if value is None:
        return ""
    return ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)


# -- protocol --------------------------------------------------------------------------------------


def protocol() -> str:
    registry.load()
    lines = [
        "# The APIs this broker answers",
        "",
        f"Made by `make docs`.  {len(registry.APIS)} of them; the head of each file in `broker/apis/` tells more, and",
        "`trilogue wire show NAME` has the fields.",
        "",
        "| key | API | versions | |",
        "| --- | --- | --- | --- |",
    ]
    for key, each in sorted(registry.APIS.items()):
        name = each.request.__name__.removesuffix("Request")
        module = sys.modules[each.handler.__module__]
        about = (module.__doc__ or "").strip().splitlines()[0].partition(": ")[2]
        lines.append(f"| {key} | {name} | {each.advertised} | {about} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
