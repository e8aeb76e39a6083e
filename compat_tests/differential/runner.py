"""Plays every scenario in every version against one broker."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from compat_tests.differential.asking import SCENARIOS, Asking
from compat_tests.differential.connection import Connection
from trilogue.wire.apis.api_versions import ApiVersionsRequest

Answers = dict[str, dict[int, dict[str, Any]]]
"""By API, version and case."""

PRODUCE, PRODUCE_TRULY_FROM = 0, 3
"""Kafka says that it answers Produce v0-2 and does not (KAFKA-18659)."""


def load() -> None:
    package = import_module("compat_tests.differential.scenarios")
    for module in iter_modules(package.__path__, package.__name__ + "."):
        import_module(module.name)


def offered(address: tuple[str, int]) -> dict[int, range]:
    """What the broker says that it answers."""
    connection = Connection(address)
    answer: Any = connection.ask(ApiVersionsRequest(), 0)
    connection.close()
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}


def run_against(address: tuple[str, int], versions: dict[int, range], only: str | None = None) -> Answers:
    """Every answer to every question, in these versions."""
    load()
    labels: dict[bytes, str] = {}
    answers: Answers = {}
    for each in SCENARIOS:
        if only is not None and each.api != only:
            continue
        for version in versions.get(each.request.api_key, ()):
            name = each.play.__name__
            asking = Asking(address, version, f"{each.api}-{name}", labels)
            try:
                each.play(asking)
            except Exception as error:
                error.add_note(f"in scenario {name} of {each.api} v{version}")
                raise
            finally:
                asking.close()
            told = answers.setdefault(each.api, {}).setdefault(version, {})
            told |= {f"{name}: {case}": answer for case, answer in asking.answers.items()}
    return answers


def shared(one: dict[int, range], other: dict[int, range]) -> dict[int, range]:
    """The versions that both offer."""
    both = {
        key: range(max(one[key].start, other[key].start), min(one[key].stop, other[key].stop))
        for key in one.keys() & other.keys()
    }
    if PRODUCE in both:
        both[PRODUCE] = range(max(both[PRODUCE].start, PRODUCE_TRULY_FROM), both[PRODUCE].stop)
    return both
