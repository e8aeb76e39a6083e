"""Names by pattern, in RE2's syntax.

Patterns are clients', and matched by everybody's broker: RE2 takes time in proportion to the name, whatever the
pattern.  Python's own `re` can be made to take for ever.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from trilogue.wire.errors import BrokerError, ErrorCode

PATTERNS_KEPT = 1000
"""Compiled ones: hardly a cluster has more at a time."""


@lru_cache(PATTERNS_KEPT)
def compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        problem = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}."
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, problem) from None


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """The names that are, from beginning to end, as the pattern says."""
    fullmatch = compiled(pattern).fullmatch
    return frozenset(name for name in names if fullmatch(name))
