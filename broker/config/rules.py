"""What a value has to be beyond its type, in two wordings: ours at start, Kafka's on the wire.

Kafka's wordings reach people through its clients and tools, which show them as they are; so an answer says
what Kafka would have said.  `kafkas` is how its ConfigDef prints the rule: a test compares every setting's.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from trilogue.broker.config.doubles import written_double


class Rule(NamedTuple):
    kafkas: str
    """The rule as Kafka's ConfigDef prints it."""
    ours: str
    """What follows "it has to be"."""
    refusal: Callable[[str, Any], str | None]
    """(name, value) -> why not, in Kafka's words; None if it may be."""
    distinct: bool = False
    """Of lists: what is said twice counts once."""


def invalid(name: str, value: object, why: str) -> str:
    if isinstance(value, float):
        value = written_double(value)
    return f"Invalid value {value} for configuration {name}: {why}"


def at_least(low: float) -> Rule:
    def refusal(name: str, value: float) -> str | None:
        return invalid(name, value, f"Value must be at least {low}") if value < low else None

    return Rule(f"[{low},...]", f"at least {low}", refusal)


def between(low: float, high: float) -> Rule:
    def refusal(name: str, value: float) -> str | None:
        if value < low:
            return invalid(name, value, f"Value must be at least {low}")
        return invalid(name, value, f"Value must be no more than {high}") if value > high else None

    return Rule(f"[{low},...,{high}]", f"from {low} to {high}", refusal)


def one_of(*words: str) -> Rule:
    listed = ", ".join(words)

    def refusal(name: str, value: str) -> str | None:
        return None if value in words else invalid(name, value, f"String must be one of: {listed}")

    return Rule(f"[{listed}]", f"one of {listed}", refusal)


def one_of_in_any_case(*words: str) -> Rule:
    listed = ", ".join(words)
    upper = {word.upper() for word in words}

    def refusal(name: str, value: str) -> str | None:
        if value.upper() in upper:
            return None
        return invalid(name, value, f"String must be one of (case insensitive): {listed}")

    return Rule(f"(case insensitive) [{listed}]", f"one of {listed}, in any case", refusal)


def some_of(*words: str, or_none: bool = False) -> Rule:
    """A list of these words; of any words if none are named."""
    listed = f"[{', '.join(words)}]" if words else ""

    def refusal(name: str, value: Sequence[str]) -> str | None:
        if not value and not or_none:
            return f"Configuration '{name}' must not be empty. Valid values include: {listed or 'any non-empty value'}"
        for word in value:
            if not word:
                return f"Configuration '{name}' values must not be empty."
            if words and word not in words:
                return invalid(name, word, f"String must be one of: {', '.join(words)}")
        return None

    ours = f"a list out of {', '.join(words)}" if words else "a list like a,b,c"
    return Rule(listed, ours, refusal, distinct=True)


def each_like(pattern: str, ours: str, complaint: Callable[[str, str], str]) -> Rule:
    """A list whose words all look like this."""

    def refusal(name: str, value: Sequence[str]) -> str | None:
        return next((complaint(name, word) for word in value if not re.fullmatch(pattern, word)), None)

    return Rule("non-empty list", ours, refusal)  # Kafka's name for it; it takes empty ones


def _not_empty(name: str, value: str | None) -> str | None:
    return invalid(name, value, "String must be non-empty") if value == "" else None


def _never(name: str, value: str) -> None:
    return None


def _gzip_level(name: str, value: int) -> str | None:
    if value == -1 or 1 <= value <= 9:
        return None
    return invalid(name, value, "Value must be between 1 and 9 or equal to -1")


REPLICAS = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _replicas(name: str, value: Sequence[str]) -> str | None:
    if list(value) == ["*"] or all(re.fullmatch(r"([0-9]+:[0-9]+)?", replica) for replica in value):
        return None
    why = f"{name} must be the literal '*' or a list of replicas in the following format: {REPLICAS}"
    return invalid(name, f"[{', '.join(value)}]", why)


# What java.time.Duration reads, unless it is negative.
DURATION = r"(?i:by_duration:\+?P(?=.)(\+?\d+D)?(T(?=.)(\+?\d+H)?(\+?\d+M)?(\+?\d+(\.\d{0,9})?S)?)?)"


def _offset_reset(name: str, value: str) -> str | None:
    if value in ("earliest", "latest") or (value.startswith("by_duration:") and re.fullmatch(DURATION, value)):
        return None
    why = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    return invalid(name, value, f"Invalid value `{value}` for configuration {name}. {why}")


NOT_EMPTY = Rule("non-empty string", "more than nothing", _not_empty)
NOT_NULL = Rule("non-null string", "given", _never)
GZIP_LEVEL = Rule("[1,...,9] or -1", "from 1 to 9, or -1", _gzip_level)
THROTTLED_REPLICAS = Rule(REPLICAS, "* or a list like 0:1,1:2 (partition:broker)", _replicas)
OFFSET_RESET = Rule(
    "[latest, earliest, by_duration:PnDTnHnMn.nS]", "earliest, latest or by_duration:PT1H", _offset_reset
)
SOME = some_of()
ANY = some_of(or_none=True)
VOTERS = each_like(
    r"\d+@.+:\d+",
    "a list like 1@host:9093",
    lambda name, word: (
        f"Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`."
    ),
)
SERVERS = each_like(
    r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:[0-9]+",
    "a list like host:9093",
    lambda name, word: (
        f"Failed to parse host name from {word} for the configuration {name}. "
        "Each entry should be in the form `{host}:{port}`"
    ),
)
