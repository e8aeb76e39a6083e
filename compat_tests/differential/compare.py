"""Where two answers differ: one line for every place."""

from collections.abc import Iterator
from typing import Any

from compat_tests.differential.runner import Answers


def differences(kafka: Any, ours: Any, path: str = "") -> Iterator[str]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in kafka | ours:
            yield from differences(kafka.get(key, "missing"), ours.get(key, "missing"), f"{path}.{key}")
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for number, (one, other) in enumerate(zip(kafka, ours, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif kafka != ours:
        yield f"{path}: Kafka {kafka!r}, we {ours!r}"


def report(kafka: Answers, ours: Answers, api: str) -> dict[str, list[int]]:
    """Every difference in what both have answered, "API | case | path: Kafka ..., we ...", and in which versions."""
    found: dict[str, list[int]] = {}
    for version in sorted(kafka[api].keys() & ours[api].keys()):
        theirs, mine = kafka[api][version], ours[api][version]
        for case in theirs | mine:
            for each in differences(theirs.get(case, "not asked"), mine.get(case, "not asked")):
                found.setdefault(f"{api} | {case} | {each}", []).append(version)
    return found
