"""A setting's value: text in, a Python value out, and back to the text that Kafka would print."""

import re
from typing import Any

from trilogue.broker.config.doubles import written_double
from trilogue.broker.config.rules import invalid
from trilogue.broker.config.setting import BOOLEAN, DOUBLE, INT, LIST, LONG, PASSWORD, SHORT, Setting, Type, Value

SIZES = {SHORT: 15, INT: 31, LONG: 63}
"""How many bits a number has besides its sign."""
DIGITS_MAX = 19
"""Of 64 bits.  Python refuses to read numbers of thousands of digits, and takes its time for fewer."""

_whole = re.compile(r"[+-]?[0-9]+").fullmatch
_decimal = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?").fullmatch
_comma = re.compile(r"\s*,\s*").split


class ConfigError(ValueError):
    """A setting that is not known, or a value that it cannot have.  One plain line."""

    def __init__(self, line: str, kafkas: str) -> None:
        super().__init__(line)
        self.kafkas = kafkas
        """What Kafka says in such a case."""


def read(setting: Setting, text: str, name: str = "") -> Value:
    """The value that this text stands for.  `name` is for settings that are known by another, longer one."""
    name = name or setting.name
    value: Value = READERS.get(setting.type, str.strip)(text.strip())
    if value is None:
        what = "too large a number" if setting.type in SIZES and _whole(text.strip()) else NOT_A[setting.type]
        raise unfit(setting, name, text, what, invalid(name, text, KAFKAS_NOT_A[setting.type]))
    if rule := setting.rule:
        if rule.distinct and isinstance(value, list):
            value = list(dict.fromkeys(value))
        if refusal := rule.refusal(name, value):
            raise unfit(setting, name, text, "", refusal)
    return value


def unfit(setting: Setting, name: str, text: str, what: str, kafkas: str) -> ConfigError:
    wanted = f"it has to be {setting.rule.ours}" if setting.rule else ""
    shown = "..." if setting.sensitive else text
    return ConfigError(f"{name}={shown}: {'; '.join(filter(None, (what, wanted)))}", kafkas)


def written(kind: Type, value: Any) -> str | None:
    """The text of a value, as Kafka prints it; nobody sees passwords."""
    if value is None or kind is PASSWORD:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return written_double(value)
    return ",".join(value) if isinstance(value, list) else str(value)


def read_boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def read_whole(bits: int, text: str) -> int | None:
    digits = text.lstrip("+-0") or "0"
    if not _whole(text) or len(digits) > DIGITS_MAX:
        return None
    value = -int(digits) if text.startswith("-") else int(digits)
    return value if -(1 << bits) <= value < 1 << bits else None


def read_decimal(text: str) -> float | None:
    return float(match[1]) if (match := _decimal(text)) else None


def read_list(text: str) -> list[str]:
    return _comma(text) if text else []


READERS: dict[Type, Any] = {
    BOOLEAN: read_boolean,
    SHORT: lambda text: read_whole(SIZES[SHORT], text),
    INT: lambda text: read_whole(SIZES[INT], text),
    LONG: lambda text: read_whole(SIZES[LONG], text),
    DOUBLE: read_decimal,
    LIST: read_list,
}
NOT_A = {
    BOOLEAN: "neither true nor false",
    SHORT: "not a whole number",
    INT: "not a whole number",
    LONG: "not a whole number",
    DOUBLE: "not a number",
}
KAFKAS_NOT_A = {
    BOOLEAN: "Expected value to be either true or false",
    SHORT: "Not a number of type SHORT",
    INT: "Not a number of type INT",
    LONG: "Not a number of type LONG",
    DOUBLE: "Not a number of type DOUBLE",
}
