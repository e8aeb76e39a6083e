"""Write docs/compatibility.md, and its summary in the README, from the results of the last runs.

python -m compat_tests.report        after the suite was run against both targets: `make compat` does all of it

A test with the mark `feature(client, name)` is a cell of the table, or a line under the client's name; others are
counted with their module.  Nothing here knows which tests there are.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from compat_tests.matrix import CLIENTS, FEATURES
from compat_tests.results import FOLDER

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- compatibility: made by `make compat` -->", "<!-- end of compatibility -->"

KAFKA, OURS = "apache-kafka", "trilogue"
Entry = dict[str, Any]
Outcomes = dict[str, str]
"""Target -> what became of it there."""


class Results:
    """The results of both targets, arranged for the page."""

    def __init__(self, lines: list[Entry]) -> None:
        self.heads = {each["target"]: each for each in lines if "test" not in each}
        entries = [each for each in lines if "test" in each]
        self.versions = {each["client"]: each["version"] for each in entries if each["client"] and "version" in each}
        self.cells: dict[str, dict[str, Outcomes]] = defaultdict(lambda: defaultdict(dict))
        self.modules: dict[tuple[str, str], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for each in entries:
            if each["client"]:
                known = self.cells[each["client"]][each["feature"]]
                known[each["target"]] = worse(known.get(each["target"], "passed"), each["outcome"])
            else:
                self.modules[each["module"], each["about"]][each["target"]][each["outcome"]] += 1


def worse(one: str, other: str) -> str:
    return max(one, other, key=["passed", "skipped", "known gap", "failed"].index)


def mark(outcomes: Outcomes) -> str:
    passed = tuple(outcomes.get(target) == "passed" for target in (KAFKA, OURS))
    if passed == (False, True) and outcomes.get(KAFKA, "skipped") == "skipped":
        return "ours"
    return {(True, True): "yes", (True, False): "**Kafka only**", (False, True): "**ours only**"}.get(passed, "**no**")


def matrix(results: Results) -> list[str]:
    clients = [each for each in CLIENTS if each.name in results.cells]
    lines = ["| | " + " | ".join(each.name for each in clients) + " |", "| --- |" + " :-: |" * len(clients)]
    for feature in FEATURES:
        cells = ["n/a" if feature in each.lacks else mark(results.cells[each.name][feature]) for each in clients]
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    versions = [results.versions.get(each.name, "?").partition(" ")[0] for each in clients]
    lines.append("| *version* | " + " | ".join(versions) + " |")
    return lines


def absent() -> list[str]:
    """Why it says n/a, and of whom."""
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for client in CLIENTS:
        for reason in client.lacks.values():
            reasons[reason][client.name] = None
    return [f"- {', '.join(names)}: {reason}." for reason, names in reasons.items()]


def others(results: Results) -> list[str]:
    """Clients that are not in the matrix: a list each."""
    known, lines = {each.name for each in CLIENTS}, []
    for client in sorted(set(results.cells) - known):
        version = results.versions.get(client)
        lines += ["", f"## {client}{f' {version}' if version else ''}", ""]
        lines += [f"- {feature}: {mark(outcomes)}" for feature, outcomes in results.cells[client].items()]
    return lines


def areas(results: Results) -> list[str]:
    lines = ["| | Apache Kafka | trilogue |", "| --- | --- | --- |"]
    for (module, about), targets in sorted(results.modules.items()):
        told = [told_counts(targets[target]) for target in (KAFKA, OURS)]
        lines.append(f"| {about} (`{Path(module).name}`) | {told[0]} | {told[1]} |")
    return lines


def told_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "not run"


def page(results: Results) -> str:
    kafka, ours = (results.heads[target] for target in (KAFKA, OURS))
    return "\n".join(
        [
            "# Compatibility",
            "",
            f"Made from test runs of {ours['finished']}: the same tests against Apache Kafka {kafka['version']} and",
            f"trilogue {ours['version']}, on Python {ours['python']}.  What differs between the two is a bug of ours;",
            "if it is known, it is in [KNOWN_GAPS.md](../KNOWN_GAPS.md).",
            "",
            "## Clients",
            "",
            "*yes*: works with both.  *ours*: not tried on Apache Kafka, which has given up what it needs.  *n/a*: the",
            "client cannot do that, whatever the broker.",
            "",
            *matrix(results),
            "",
            "What clients cannot do:",
            "",
            *absent(),
            *others(results),
            "",
            "## Other tests",
            "",
            "Skipped on Apache Kafka are those that kill the broker, and clients that Kafka 4 does not serve any more.",
            "",
            *areas(results),
            "",
        ]
    )


def parts(results: Results) -> list[str]:
    """What was asked for, where that was not the whole suite."""
    return sorted({each["part"] for each in results.heads.values() if each["part"]})


def summary(results: Results) -> str:
    marks = Counter(mark(outcomes) for features in results.cells.values() for outcomes in features.values())
    names = [each.name for each in CLIENTS if each.name in results.cells]
    more = sorted(set(results.cells) - set(names))
    same = marks["yes"] + marks["ours"]
    kafka, ours = (results.heads[target] for target in (KAFKA, OURS))
    return (
        f"[{same} of {sum(marks.values())} features of clients](docs/compatibility.md) work as with Apache Kafka "
        f"{kafka['version']} ({ours['finished']}):\n{', '.join(names + more)}."
    )


def between(text: str, content: str) -> str:
    """The text with this content between the two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md has lost its marks: {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def main() -> int:
    paths = [FOLDER / f"{target}.jsonl" for target in (KAFKA, OURS)]
    missing = [path for path in paths if not path.exists()]
    if missing:
        print(f"report: no results in {missing[0].name}; `make compat` runs the suite first", file=sys.stderr)
        return 1
    results = Results([json.loads(line) for path in paths for line in path.read_text().splitlines()])
    if some := parts(results):
        problem = f"only a part of the suite was run last ({'; '.join(some)}), and the page is about all of it"
        print(f"report: {problem}; `make compat` runs the whole", file=sys.stderr)
        return 1
    PAGE.write_text(page(results))
    README.write_text(between(README.read_text(), summary(results)))
    print(summary(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
