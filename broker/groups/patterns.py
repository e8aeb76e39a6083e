"""Names by pattern, in RE2's syntax.

Patterns are clients', and matched by everybody's broker: RE2 takes time in proportion to the name, whatever the
pattern.  Python's own `re` can be made to take for ever.

What a pattern matches is remembered.  When topics come or go, only those are looked at; and however many patterns match
the same topics, they share one set of them.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import re2

from trilogue.wire.errors import BrokerError, ErrorCode

PATTERNS_KEPT = 100_000
"""Each takes some hundred bytes; to look at all topics anew takes milliseconds."""

NO_TOPICS: Mapping[str, object] = {}


class Known:
    """What a pattern matches, and among which topics that was."""

    __slots__ = ("found", "topics")

    def __init__(self) -> None:
        self.topics = NO_TOPICS
        self.found: frozenset[str] = frozenset()


_shared: WeakValueDictionary[frozenset[str], frozenset[str]] = WeakValueDictionary()


def shared(names: Iterable[str]) -> frozenset[str]:
    """The one set of these names."""
    found = frozenset(names)
    return _shared.setdefault(found, found)


def matching(pattern: str, topics: Mapping[str, object]) -> frozenset[str]:
    """The topics whose names are, from beginning to end, as the pattern says."""
    known = _known(pattern)
    if known.topics is not topics:
        gone, new = _difference(known, topics)
        if gone or new:
            known.found = shared(known.found - gone | _match(pattern, new))
        known.topics = topics
    return known.found


@lru_cache(PATTERNS_KEPT)
def _known(pattern: str) -> Known:
    _compiled(pattern)  # or it is refused
    return Known()


_last: list[tuple[Mapping[str, object], Mapping[str, object], set[str], set[str]]] = []


def _difference(known: Known, topics: Mapping[str, object]) -> tuple[set[str], set[str]]:
    """What is gone and what is new since then; many patterns ask for the same."""
    for before, after, gone, new in _last:
        if before is known.topics and after is topics:
            return gone, new
    gone, new = known.topics.keys() - topics.keys(), topics.keys() - known.topics.keys()
    _last[:] = [(known.topics, topics, gone, new)]
    return gone, new


def _match(pattern: str, names: Iterable[str]) -> set[str]:
    # A set of one pattern takes a sixth of the time of the pattern itself: it does not say where it matched.
    one = re2.Set.FullMatchSet(_options())
    one.Add(pattern)
    one.Compile()
    return {name for name in names if one.Match(name)}


def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        problem = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}."
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, problem) from None


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options
