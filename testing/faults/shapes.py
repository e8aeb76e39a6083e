"""What a request is about, and how its answer says no: read off the wire's declarations, not written for each API.

A request is about topics, partitions, groups and transactional ids, which it names in fields and lists.  An answer has
error codes at some depth, and each stands for an element of a list of the request: `shape` pairs those lists.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from trilogue.wire.schema import ZERO_UUID, Field, Kind, Request, Response, Struct

CODES = ("error_code", "partition_error_code")

TOPIC, TOPIC_ID, NAME = {"topic", "topic_name"}, "topic_id", "name"
"""`name` is a topic's in what is called `Topic`, and in lists of answers that have error codes."""
PARTITION = {"index", "partition", "partition_index", "partition_id"}
GROUP, TRANSACTION = {"group_id"}, {"transactional_id", "v3_and_below_transactional_id"}
KEY, KEYS = "key", "coordinator_keys"
"""FindCoordinator's: what is looked for is a group, or a transactional id."""
OF_GROUP = 0
RESOURCE = "resource_name"
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32
MEMBER = "member_id"

PLAIN = {
    "partitions": "partition",
    "partition_indexes": "partition",
    "topic_names": "topic",
    "subscribed_topic_names": "topic",
    "groups": "group",
    "groups_names": "group",
    "group_ids": "group",
    "transactional_ids": "transactional_id",
    KEYS: KEY,
}
"""What lists of plain texts and numbers stand for."""

NOT_ASKED = {"forgotten_topics_data", "assignments"}
"""Lists that a request is not about, whatever they name."""


class Subject(NamedTuple):
    """One thing that a request is about, as far as it says."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None


NOBODY = Subject()

Names = Callable[[bytes], str | None]
"""What the topic of an id is called."""


# -- pairs of lists --------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A list of the request, and the list of the answer that has an element for each of its elements."""

    asked: Field
    answered: Field
    below: "Pair | None"
    """The error codes are deeper still."""


class Shape(NamedTuple):
    """Of an API in one version."""

    answer: type[Response]
    pairs: tuple[Pair, ...]
    top: str | None
    """The error code of the whole answer, if it has one."""

    @property
    def can_refuse(self) -> bool:
        return bool(self.pairs) or self.top is not None


def answer_of(request: type[Request]) -> type[Response]:
    name = request.__name__.removesuffix("Request") + "Response"
    found: type[Response] = getattr(import_module(request.__module__), name)
    return found


@cache
def shape(request: type[Request], version: int) -> Shape:
    answer = answer_of(request)
    return Shape(answer, tuple(pairs(request, answer, version)), code_in(answer, version))


def pairs(asked: Any, answered: Any, version: int) -> Iterator[Pair]:
    for ours in present(answered, version):
        if not ours.is_list or isinstance(ours.kind, Kind):
            continue
        for theirs in present(asked, version):
            if theirs.is_list and theirs.name not in NOT_ASKED and alike(theirs, ours):
                below = None if isinstance(theirs.kind, Kind) else next(pairs(theirs.kind, ours.kind, version), None)
                if below is not None or code_in(ours.kind, version) is not None:
                    yield Pair(theirs, ours, below)
                    break


def present(struct: Any, version: int) -> Iterator[Field]:
    return (each for each in struct.fields.values() if version in each.rule.versions)


def code_in(struct: Any, version: int) -> str | None:
    return next((each.name for each in present(struct, version) if each.name in CODES), None)


def alike(asked: Field, answered: Field) -> bool:
    """Whether the elements of the two lists stand for the same."""
    kind = PLAIN.get(asked.name) if isinstance(asked.kind, Kind) else kind_of(asked.kind)
    theirs = kind_of(answered.kind, answer=True)
    return kind == theirs if kind is not None else theirs is None and asked.name == answered.name


def kind_of(struct: Any, *, answer: bool = False) -> str | None:
    names = set(struct.fields)
    if names & PARTITION:
        return "partition"
    if topic_field(struct, answer=answer) is not None or TOPIC_ID in names:
        return "topic"
    if names & GROUP:
        return "group"
    if names & TRANSACTION:
        return "transactional_id"
    return next((each for each in (KEY, RESOURCE, MEMBER) if each in names), None)


def topic_field(struct: Any, *, answer: bool = False) -> str | None:
    """Where a struct has a topic's name."""
    for name in struct.fields:
        if name in TOPIC or (name == NAME and (answer or is_topic(struct))):
            return str(name)
    return None


def is_topic(struct: Any) -> bool:
    return bool(struct.__name__ == "Topic")


# -- what a request is about -----------------------------------------------------------------------


@cache
def selectors(request: type[Request]) -> frozenset[str]:
    """The fields of `Subject` that requests of this API have, in some version."""
    return frozenset(spoken(request))


def spoken(struct: Any) -> Iterator[str]:
    if topic_field(struct) is not None or TOPIC_ID in struct.fields:
        yield "topic"
    for each in struct.fields.values():
        name, plain = each.name, isinstance(each.kind, Kind)
        if name in NOT_ASKED:
            continue
        if name in PARTITION:
            yield "partition"
        elif name in GROUP:
            yield "group"
        elif name in TRANSACTION:
            yield "transactional_id"
        elif name in (KEY, KEYS):
            yield from ("group", "transactional_id")
        elif name == RESOURCE:
            yield from ("topic", "group")
        elif each.is_list and plain and name in PLAIN:
            yield PLAIN[name]
        elif not plain:
            yield from spoken(each.kind)


def subjects(struct: Any, version: int, names: Names, above: Subject = NOBODY) -> Iterator[Subject]:
    """Everything that it is about; itself, if it names nothing below."""
    about = identified(struct, version, names, above)
    found = False
    for each in present(struct, version):
        if not each.is_list or each.name in NOT_ASKED:
            continue
        for element in getattr(struct, each.name) or ():
            if not isinstance(element, Struct):
                if each.name in PLAIN:
                    found = True
                    yield said(each.name, element, struct, about)
            elif any(spoken(type(element))):
                found = True
                yield from subjects(element, version, names, about)
    if not found:
        yield about


def said(name: str, element: Any, struct: Any, about: Subject) -> Subject:
    """What an element of a plain list adds."""
    kind = PLAIN[name]
    if kind == KEY:
        kind = "group" if struct.key_type == OF_GROUP else "transactional_id"
    return about._replace(**{kind: element})


def identified(struct: Any, version: int, names: Names, above: Subject) -> Subject:
    """What its own fields add."""
    about = above
    topic = topic_field(type(struct))
    for each in present(type(struct), version):
        name, value = each.name, getattr(struct, each.name)
        if each.is_list or value is None:
            continue
        if name == topic and value:
            about = about._replace(topic=value)
        elif name == TOPIC_ID and value != ZERO_UUID:
            about = about._replace(topic=names(value))
        elif name in PARTITION:
            about = about._replace(partition=value)
        elif name in GROUP:
            about = about._replace(group=value)
        elif name in TRANSACTION:
            about = about._replace(transactional_id=value)
        elif name == KEY:
            about = about._replace(**{"group" if struct.key_type == OF_GROUP else "transactional_id": value})
        elif name == RESOURCE and struct.resource_type in (TOPIC_RESOURCE, GROUP_RESOURCE):
            about = about._replace(**{"topic" if struct.resource_type == TOPIC_RESOURCE else "group": value})
    return about
