"""What a run of the compatibility suite leaves behind: a line of JSON per test, from which the table is made.

A test that speaks for a cell of the table has the mark `feature(client, name)`; all others are counted with their
module.  A test may tell more with `record_property`: `version` is the client's.

`expected_failures.txt` holds tests that are known to fail, with a target and a reason.  They must fail: one that
passes has to be taken out.
"""

import json
import platform
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parent / "build" / "compat"
EXPECTED_FAILURES = HERE / "expected_failures.txt"


class Expected(NamedTuple):
    target: str
    test: str
    reason: str


def expected_failures(text: str) -> list[Expected]:
    """`target test-id # reason`, one a line; a line of its own that begins with # is a comment."""
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            place, _, reason = line.partition(" # ")
            target, _, test = place.strip().partition(" ")
            if not (target and test and reason.strip()):
                raise ValueError(f"not `target test-id # reason`: {line}")
            found.append(Expected(target, test.strip(), reason.strip()))
    return found


class Recorder:
    """A pytest plugin that watches this folder's tests and no others."""

    def __init__(self, target: str, version: str, part: str, path: Path) -> None:
        self.target, self.version, self.part, self.path = target, version, part, path
        self.entries: dict[str, dict[str, Any]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = {each.test: each.reason for each in expected_failures(EXPECTED_FAILURES.read_text())
                 if each.target == self.target}  # fmt: skip
        for item in filter(ours, items):
            if item.nodeid in known:
                item.add_marker(pytest.mark.xfail(reason=known[item.nodeid], strict=True))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:  # what comes out is pytest's report, and goes on as it is
        report: pytest.TestReport = yield  # type: ignore[misc,assignment]
        if ours(item):
            entry = self.entries.setdefault(item.nodeid, self._entry(item))
            entry["seconds"] = round(entry["seconds"] + report.duration, 3)
            if report.when == "call" or report.outcome != "passed":
                entry["outcome"] = outcome(report)
            entry |= {name: value for name, value in report.user_properties if name != "outcome"}
        return report  # type: ignore[return-value]

    def _entry(self, item: pytest.Item) -> dict[str, Any]:
        mark = item.get_closest_marker("feature")
        client, feature = mark.args if mark else (None, None)
        module = item.getparent(pytest.Module)
        about = ((module and module.obj.__doc__) or "").partition("\n")[0]
        return {
            "target": self.target, "client": client, "feature": feature, "test": item.nodeid,
            "module": item.nodeid.partition("::")[0], "about": about, "outcome": "passed", "seconds": 0.0,
        }  # fmt: skip

    def pytest_sessionfinish(self) -> None:
        if self.entries:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            head = {"target": self.target, "version": self.version, "finished": time.strftime("%Y-%m-%d")}
            head |= {"python": platform.python_version(), "part": self.part}
            lines = [json.dumps(each) + "\n" for each in (head, *self.entries.values())]
            self.path.write_text("".join(lines))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        areas: dict[str, list[float]] = defaultdict(list)
        for each in self.entries.values():
            areas[each["module"]].append(each["seconds"])
        if areas:
            terminalreporter.section(f"compatibility with {self.target}: time by area")
        for area, seconds in sorted(areas.items()):
            terminalreporter.line(f"{sum(seconds):7.1f} s  {len(seconds):4} tests  {area}")


def part(config: pytest.Config) -> str:
    """What was asked for, if it was not the whole suite: the page must not pass it off as that."""
    paths = [Path(config.invocation_params.dir, each.partition("::")[0]).resolve() for each in config.args]
    narrowed = [str(config.option.keyword), str(config.option.markexpr)]
    if any(narrowed) or HERE not in paths:
        return " ".join(each for each in (*config.args, *narrowed) if each)
    return ""


def ours(item: pytest.Item) -> bool:
    return item.path.is_relative_to(HERE)


def outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "known gap" if report.outcome == "skipped" else "failed"
    return str(report.outcome)
