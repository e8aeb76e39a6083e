"""`sasl.jaas.config`: a login module of Java's, and its options, for those who have no Java.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret" user_me="secret";

Words may stand in quotes of both kinds, with backslashes in them; comments are Java's.
"""

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<mark>[=;])
    | (?P<word>[^\s"'=;]+)
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPED = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
FLAGS = ("required", "requisite", "sufficient", "optional")
USER_PREFIX = "user_"


class JaasError(ValueError):
    """What is wrong with it; no word of what may be secret."""


class Login(NamedTuple):
    module: str
    options: dict[str, str]

    @property
    def users(self) -> dict[str, str]:
        """The passwords of those whom the broker knows by this entry."""
        return {
            name.removeprefix(USER_PREFIX): value
            for name, value in self.options.items()
            if name.startswith(USER_PREFIX)
        }


def parse(text: str) -> Login:
    """Exactly one entry."""
    words = tokens(text)
    if not words:
        raise JaasError("there is no login module in it")
    if words[-1] != (False, ";"):
        raise JaasError("it does not end in a semicolon")
    if words.count((False, ";")) > 1:
        raise JaasError("it names more than one login module")
    (_, module), *rest = words[:-1] or [(False, "")]
    if not rest or rest[0][1].casefold() not in FLAGS:
        raise JaasError(f"what follows the login module is none of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    rest = rest[1:]
    while rest:
        (_, name), *after = rest
        if len(after) < 2 or after[0] != (False, "=") or after[1] == (False, "="):
            raise JaasError(f'option {len(options) + 1} has no value: write NAME="VALUE"')
        options[name] = after[1][1]
        rest = after[2:]
    return Login(module, options)


def tokens(text: str) -> list[tuple[bool, str]]:
    """Words and marks in their order, each with whether it stood in quotes."""
    found = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise JaasError("a quote is not closed")
        at = match.end()
        if match["quoted"]:
            found.append((True, ESCAPED.sub(unescaped, match["quoted"][1:-1])))
        elif not match["space"]:
            found.append((False, match[0]))
    return found


def unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 8)) if match[1] else LETTERS.get(match[2], match[2])
