"""The answers in a file that people can read: by API and case, equal answers of several versions told once."""

import json
from pathlib import Path
from typing import Any

from compat_tests.differential.runner import Answers

FILE = Path(__file__).with_name("recorded.json")


def save(versions: dict[int, range], answers: Answers) -> None:
    """One line for every answer, so that a change is a readable difference."""
    lines = ["{", f'"offered": {json.dumps({key: [each.start, each.stop - 1] for key, each in versions.items()})},']
    lines.append('"answers": {')
    for api, cases in sorted(folded(answers).items()):
        lines.append(f"{json.dumps(api)}: {{")
        for case, told in cases.items():
            lines.append(f"  {json.dumps(case)}: {{")
            lines += [f"    {json.dumps(key)}: {json.dumps(answer)}," for key, answer in told.items()]
            lines[-1] = lines[-1].rstrip(",")
            lines.append("  },")
        lines[-1] = "  }"
        lines.append("},")
    lines[-1] = "}"
    lines += ["}", "}"]
    FILE.write_text("\n".join(lines) + "\n")


def read() -> tuple[dict[int, range], Answers]:
    stored = json.loads(FILE.read_text())
    offered = {int(key): range(first, last + 1) for key, (first, last) in stored["offered"].items()}
    answers: Answers = {}
    for api, cases in stored["answers"].items():
        for case, told in cases.items():
            for key, answer in told.items():
                for version in unfold(key):
                    answers.setdefault(api, {}).setdefault(version, {})[case] = answer
    return offered, answers


def folded(answers: Answers) -> dict[str, dict[str, dict[str, Any]]]:
    """API -> case -> versions -> answer."""
    found: dict[str, dict[str, list[tuple[int, int, Any]]]] = {}
    for api, by_version in answers.items():
        cases = found.setdefault(api, {})
        for version, told in sorted(by_version.items()):
            for case, answer in told.items():
                runs = cases.setdefault(case, [])
                if runs and runs[-1][1] == version - 1 and runs[-1][2] == answer:
                    runs[-1] = (runs[-1][0], version, answer)
                else:
                    runs.append((version, version, answer))
    return {
        api: {case: {f"{a}-{b}" if a != b else f"{a}": answer for a, b, answer in runs} for case, runs in cases.items()}
        for api, cases in found.items()
    }


def unfold(key: str) -> range:
    first, _, last = key.partition("-")
    return range(int(first), int(last or first) + 1)
