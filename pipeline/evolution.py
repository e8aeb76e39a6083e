"""Whether rows fit into a table that is there, though their columns have changed, and what is done so that they do.

Types are Spark's, as its schemas have them in JSON.  Nothing here knows Spark.

The law: whatever may be written leaves a table that every reader can read, old rows and new.  New columns may come and
old ones may stay away.  A type may become wider, and then what is there is written anew, since files of two types
cannot be read together; rows of a narrower type are widened before they are written.  Everything else is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Type = str | dict[str, Any]
Columns = Mapping[str, Type]
"""By name, in their order."""

WHOLE_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""How many digits whole numbers of these types may have; the narrowest first."""

EXACT_IN_DOUBLE = ("byte", "short", "integer", "float", "double")
DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
DIGITS_MAX = 38

IN_SQL = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


@dataclass(frozen=True)
class Fit:
    """How rows are written to a table."""

    columns: Mapping[str, tuple[str, Type]]
    """Of each of theirs, what it is called there and what type it is to have."""
    widened: Mapping[str, Type]
    """Columns of the table that have to be written anew, and their new types."""
    added: Mapping[str, Type]
    """Columns that it lacks."""
    grown: Mapping[str, Type]
    """Columns that get more inside."""
    schema: Columns
    """What it has once they are written."""


def fit(there: Columns, coming: Columns) -> tuple[Fit, list[str]]:
    """How what comes is written to what is there, and what stands against it: a sentence for each column."""
    names = {name.casefold(): name for name in there}
    columns: dict[str, tuple[str, Type]] = {}
    widened: dict[str, Type] = {}
    added: dict[str, Type] = {}
    grown: dict[str, Type] = {}
    problems = []
    for name, kind in coming.items():
        known = names.get(name.casefold())
        if known is None:
            columns[name] = name, kind
            added[name] = kind
            continue
        wanted = common(there[known], kind)
        if wanted is None:
            problems.append(refusal(known, there[known], kind))
            continue
        columns[name] = known, wanted
        if wanted != there[known]:
            (grown if nested(wanted) else widened)[known] = wanted
    schema = {**there, **dict(columns.values())}
    return Fit(columns, widened, added, grown, schema), problems


def refusal(name: str, there: Type, coming: Type) -> str:
    old, new = in_sql(there), in_sql(coming)
    way_out = (
        "" if nested(there) or nested(coming) else f'keep it with a step (derive, {name} = "CAST({name} AS {old})"), '
    )
    return f"column {name} is {old} there and would be {new}: {way_out}give it another name, or write to a new table"


def common(old: Type, new: Type) -> Type | None:
    """The type that holds all values of both, as they are."""
    if isinstance(old, dict) or isinstance(new, dict):
        return together(old, new)
    if old == new:
        return old
    for narrow, wide in ((old, new), (new, old)):
        if holds(wide, narrow):
            return wide
    if old in EXACT_IN_DOUBLE and new in EXACT_IN_DOUBLE:
        return "double"
    one, two = decimal(old), decimal(new)
    if one is None or two is None:
        return None
    whole, fraction = max(one[0], two[0]), max(one[1], two[1])
    return f"decimal({whole + fraction},{fraction})" if whole + fraction <= DIGITS_MAX else None


def holds(wide: str, narrow: str) -> bool:
    if narrow == "void":
        return True
    if narrow in WHOLE_DIGITS and wide in WHOLE_DIGITS:
        return WHOLE_DIGITS[narrow] <= WHOLE_DIGITS[wide]
    if wide == "double":
        return narrow in EXACT_IN_DOUBLE
    found, other = decimal(wide), decimal(narrow)
    if DECIMAL.fullmatch(wide) and found is not None and other is not None:
        return found[0] >= other[0] and found[1] >= other[1]
    return False


def decimal(name: str) -> tuple[int, int] | None:
    """How many digits before and behind the point."""
    if name in WHOLE_DIGITS:
        return WHOLE_DIGITS[name], 0
    match = DECIMAL.fullmatch(name)
    return (int(match[1]) - int(match[2]), int(match[2])) if match else None


# -- types that hold others ------------------------------------------------------------------------


def nested(kind: Type) -> bool:
    return isinstance(kind, dict)


def together(old: Type, new: Type) -> Type | None:
    """Of two of the same form, both with fields of their own perhaps, but none of different types: readers put such
    together.  What is inside is never widened."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return old if old == new else None
    if old["type"] != new["type"]:
        return None
    if old["type"] == "struct":
        theirs = {each["name"].casefold(): each for each in new["fields"]}
        fields = []
        for each in old["fields"]:
            other = theirs.pop(each["name"].casefold(), None)
            inside = each["type"] if other is None else together(each["type"], other["type"])
            if inside is None:
                return None
            fields.append({**each, "type": inside})
        return {**old, "fields": fields + list(theirs.values())}
    parts = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(old["type"], ())
    found = {part: together(old[part], new[part]) for part in parts}
    return {**old, **found} if all(found.values()) and parts else None


def in_sql(kind: Type) -> str:
    """As people write it."""
    if isinstance(kind, str):
        return IN_SQL.get(kind, kind.upper())
    if kind["type"] == "struct":
        inside = ", ".join(f"{each['name']}: {in_sql(each['type'])}" for each in kind["fields"])
    else:
        inside = ", ".join(in_sql(kind[part]) for part in ("keyType", "elementType", "valueType") if part in kind)
    return f"{kind['type'].upper()}<{inside}>"


# -- folders ---------------------------------------------------------------------------------------


def partition_columns(files: Iterable[str]) -> list[str] | None:
    """Which columns are folders in a table of these files; None if there are no files."""
    for name in files:
        return [part.partition("=")[0] for part in name.split("/")[:-1] if "=" in part]
    return None


def other_folders(there: Sequence[str] | None, wanted: Sequence[str]) -> str | None:
    """What is wrong with the folders that rows would go to."""
    if there is None or list(there) == list(wanted):
        return None
    was, is_now = (", ".join(names) or "nothing" for names in (there, wanted))
    return f"the table is partitioned by {was}, and partition_by says {is_now}: undo that, or write to a new table"
