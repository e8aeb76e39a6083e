"""Refuse a part of a request: what is left of it to be handled, and the answer to the part that is refused.

At the smallest unit that has an error code: of a Produce for two partitions one may be refused, and the other is
written.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

from trilogue.testing.faults.shapes import (
    CODES,
    GROUP,
    KEY,
    NAME,
    NOBODY,
    PARTITION,
    PLAIN,
    TOPIC,
    TRANSACTION,
    Names,
    Pair,
    Shape,
    Subject,
    code_in,
    identified,
    present,
    said,
    shape,
    subjects,
)
from trilogue.wire.errors import ErrorCode
from trilogue.wire.schema import Kind, Request, Response, Struct

Judge = Callable[[Subject], ErrorCode | None]
"""Says no, or nothing."""

MESSAGE, SAID = "error_message", "by a fault of the test"

UNKNOWN = {"base_offset", "high_watermark", "committed_offset", "low_watermark", "offset", "timestamp", "end_offset"}
UNKNOWN |= {"leader_epoch", "leader_id", "node_id", "producer_id", "producer_epoch"}
"""What answers say -1 of, beside an error."""

SYNONYMS = ({*TOPIC, NAME}, PARTITION, GROUP, TRANSACTION, {KEY})
"""Under one of these names the answer repeats what was asked for under another."""


class Divided(NamedTuple):
    kept: Request | None
    """What is to be handled; None if nothing is left."""
    refused: Response | None
    """Only the part that is refused."""


def divide(request: Request, version: int, names: Names, judge: Judge) -> Divided:
    form = shape(type(request), version)
    listed = [pair for pair in form.pairs if getattr(request, pair.asked.name)]
    if not listed:
        return divide_whole(request, version, form, names, judge)
    about = identified(request, version, names, NOBODY)
    if about.group is not None and form.top is not None and (code := judge(about)) is not None:
        return Divided(None, saying_no(form.answer(), version, code))  # the group's own: OffsetFetch before v8
    kept, refused = copy(request), form.answer()
    left, found = False, False
    for pair in listed:
        ours, theirs = divide_list(request, pair, version, names, judge, about)
        setattr(kept, pair.asked.name, ours)
        setattr(refused, pair.answered.name, theirs)
        left, found = left or bool(ours), found or bool(theirs)
    return Divided(kept if left else None, refused if found else None)


def divide_whole(request: Request, version: int, form: Shape, names: Names, judge: Judge) -> Divided:
    """It names nothing that has an error code of its own: all of it is refused, or nothing."""
    code = next(filter(None, map(judge, subjects(request, version, names))), None)
    if code is None or form.top is None:
        return Divided(request, None)
    return Divided(None, saying_no(form.answer(), version, code))


def divide_list(
    struct: Any, pair: Pair, version: int, names: Names, judge: Judge, above: Subject
) -> tuple[list[Any], list[Any]]:
    kept, refused = [], []
    for element in getattr(struct, pair.asked.name):
        mirror = mirrored(pair.answered.kind, version, element, pair.asked.name)
        if not isinstance(element, Struct):
            about = said(pair.asked.name, element, struct, above)
        else:
            about = identified(element, version, names, above)
            code = judge(about) if code_in(pair.answered.kind, version) is not None else None
            if code is not None:  # of what is as large as this, say of a whole group
                refused.append(saying_no(mirror, version, code))
                continue
            if pair.below is not None and getattr(element, pair.below.asked.name) is not None:
                ours, theirs = divide_list(element, pair.below, version, names, judge, about)
                if theirs:
                    setattr(mirror, pair.below.answered.name, theirs)
                    refused.append(mirror)
                if ours or not theirs:
                    rest = copy(element)
                    setattr(rest, pair.below.asked.name, ours)
                    kept.append(rest)
                continue
        code = judge(about)
        if code is None or code_in(pair.answered.kind, version) is None:
            kept.append(element)
        else:
            refused.append(saying_no(mirror, version, code))
    return kept, refused


def mirrored(kind: Any, version: int, element: Any, list_name: str) -> Any:
    """An element of the answer that says what it is about, as the request did."""
    mirror = kind()
    for each in present(kind, version):
        if each.kind is Kind.RECORDS:
            setattr(mirror, each.name, b"")
        elif not each.is_list and isinstance(each.kind, Kind) and each.name not in CODES:
            value = repeated(each.name, element, list_name)
            if value is not None:
                setattr(mirror, each.name, value)
    return mirror


def repeated(name: str, element: Any, list_name: str) -> Any:
    same = next((each for each in SYNONYMS if name in each), None)
    if not isinstance(element, Struct):
        return element if same is not None or name in PLAIN.values() else None
    if same is not None:
        return next((getattr(element, each) for each in (name, *sorted(same)) if hasattr(element, each)), None)
    return -1 if name in UNKNOWN else getattr(element, name, None)


def saying_no(answer: Any, version: int, code: ErrorCode) -> Any:
    where = code_in(type(answer), version)
    assert where is not None
    setattr(answer, where, int(code))
    for each in present(type(answer), version):
        if each.name == MESSAGE:
            setattr(answer, MESSAGE, SAID)
        elif each.name in UNKNOWN:
            setattr(answer, each.name, -1)
    return answer


# -- and together again ----------------------------------------------------------------------------


def join(answer: Response, refused: Response, request: type[Request], version: int) -> Response:
    """The answer to what was handled, with what was refused in its place."""
    for pair in shape(request, version).pairs:
        join_lists(answer, refused, pair)
    return answer


def join_lists(answer: Any, refused: Any, pair: Pair) -> None:
    name = pair.answered.name
    there = getattr(answer, name)
    joined = list(there or ())
    for each in getattr(refused, name) or ():
        twin = next((one for one in joined if pair.below is not None and same_thing(one, each)), None)
        if twin is None or pair.below is None:
            joined.append(each)
        else:
            join_lists(twin, each, pair.below)
    setattr(answer, name, joined)


def same_thing(one: Any, other: Any) -> bool:
    names = [name for same in SYNONYMS for name in same if name in one.__struct_fields__] + ["topic_id"]
    return all(getattr(one, name, None) == getattr(other, name, None) for name in names)
