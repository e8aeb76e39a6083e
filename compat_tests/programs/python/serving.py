"""What the Python programs share: jobs come in as lines, answers go out as JSON.  `program.py` tells the rules."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Answer = dict[str, Any]


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def arguments() -> tuple[str, dict[str, str]]:
    """The bootstrap address and the settings that this program was started with."""
    return sys.argv[1], pairs(sys.argv[2:])


def jobs() -> Iterator[tuple[str, dict[str, str]]]:
    for line in sys.stdin:
        yield job(line)


def job(line: str) -> tuple[str, dict[str, str]]:
    verb, *words = line.split()
    return verb.replace("-", "_"), pairs(words)


def pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)  # type: ignore[misc]


def serve(client: object) -> None:
    for verb, given in jobs():
        say(attempt(getattr(client, verb), given))


def attempt(act: Callable[..., Answer | None], given: dict[str, str]) -> Answer:
    try:
        return act(**given) or {}
    except Exception as problem:  # whatever a client can raise is an answer here
        return refusal(problem)


def refusal(problem: BaseException) -> Answer:
    return {"error": f"{type(problem).__name__}: {problem}"}


def say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


def records(text: str) -> list[Record]:
    """`key,value,name,value,...;...`, each in hexadecimal, `-` for null."""
    found = []
    for each in text.split(";"):
        key, value, *rest = (None if word == "-" else bytes.fromhex(word) for word in each.split(","))
        headers = [((rest[i] or b"").decode(), rest[i + 1] or b"") for i in range(0, len(rest), 2)]
        found.append(Record(key, value, headers))
    return found


def told(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Any) -> Answer:
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": hexed(key),
        "value": hexed(value),
        "headers": [[name, hexed(content)] for name, content in headers or ()],
    }


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def stamps(first: str, count: int) -> list[int | None]:
    """A second apart, from the first on; or the client's own."""
    return [int(first) + 1000 * index if first else None for index in range(count)]
