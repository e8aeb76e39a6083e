"""Kafka messages, declared once for all their versions.

A message is a class and a field is a line.  The annotation says what travels and what Python sees;
`field` says when it travels:

    class Topic(Struct):
        name: String | None = field(nullable="10+")

`trees.tree(Topic, 12)` is that message in one version, as a plain construct tree; `compile.codec` writes
straight-line code from the tree.  Declaring costs little and imports neither.
"""

import sys
from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple, dataclass_transform, get_args, get_origin

import msgspec

LAST = 32767
"""The last version there can be: what `3+` runs to."""

ZERO_UUID = bytes(16)
"""Kafka's "no id".  Ids are sixteen plain bytes here: a `uuid.UUID` costs a microsecond to make, and Kafka
does not print them that way either."""


class Kind(Enum):
    """What travels on the wire under a plain annotation; the value is its `struct` format, if it has one."""

    INT8 = "b"
    INT16 = "h"
    UINT16 = "H"
    INT32 = "i"
    UINT32 = "I"
    INT64 = "q"
    FLOAT64 = "d"
    BOOL = "?"
    UUID = "16s"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"


# What a field may be annotated with.
Int8 = Annotated[int, Kind.INT8]
Int16 = Annotated[int, Kind.INT16]
UInt16 = Annotated[int, Kind.UINT16]
Int32 = Annotated[int, Kind.INT32]
UInt32 = Annotated[int, Kind.UINT32]
Int64 = Annotated[int, Kind.INT64]
Float64 = Annotated[float, Kind.FLOAT64]
Bool = Annotated[bool, Kind.BOOL]
Uuid = Annotated[bytes, Kind.UUID]
String = Annotated[str, Kind.STRING]
Bytes = Annotated[bytes, Kind.BYTES]
# Record batches.  Parsed, a view of the receive buffer; to be built, a buffer, or anything with a length
# that the sender knows how to send, such as a slice of a file.
Records = Annotated[Any, Kind.RECORDS]


class Versions(NamedTuple):
    """A run of versions; `first > last` says none."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """'3' is only 3, '3-7' is 3 to 7, '3+' is 3 and up, '' and 'none' are never."""
        if text in ("", "none"):
            return cls(1, 0)
        first, dash, last = text.rstrip("+").partition("-")
        if text.endswith("+"):
            return cls(int(first), LAST)
        return cls(int(first), int(last) if dash else int(first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __and__(self, other: "Versions") -> "Versions":
        return Versions(max(self.first, other.first), min(self.last, other.last))

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.last == LAST:
            return f"{self.first}+"
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"


ALWAYS = Versions(0, LAST)
NEVER = Versions(1, 0)


class Rule(NamedTuple):
    """What `field` was told."""

    versions: Versions = ALWAYS
    nullable: Versions = ALWAYS
    tag: int | None = None
    default: Any = ...


def field(versions: str = "0+", *, nullable: str = "0+", default: Any = ..., tag: int | None = None) -> Any:
    """One field of a message.

    versions  when it exists; outside them it keeps its default
    nullable  when null is legal, for `| None` fields; unsaid means always
    default   unsaid means the zero of its type: 0, "", [], a struct of defaults
    tag       travels in the tagged section under this number, when not at its default
    """
    return Rule(Versions.parse(versions), Versions.parse(nullable), tag, default)


class Field(NamedTuple):
    """One field as declared: its rule, and its annotation taken apart."""

    name: str
    rule: Rule
    kind: Any  # a Kind, or the class of a Struct
    is_list: bool
    optional: bool

    def make_default(self) -> Any:
        """A value for versions that lack the field; fresh where it can be changed."""
        if self.rule.default is not ...:
            return self.rule.default
        if self.is_list:
            return []
        return ZERO[self.kind] if isinstance(self.kind, Kind) else self.kind()

    def nullable_in(self, version: int) -> bool:
        return self.optional and version in self.rule.nullable


ZERO: dict[Kind, Any] = {
    **dict.fromkeys(Kind, 0),
    Kind.FLOAT64: 0.0,
    Kind.BOOL: False,
    Kind.UUID: ZERO_UUID,
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.RECORDS: None,
}


def annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    if sys.version_info >= (3, 14):  # they are made only when asked for
        import annotationlib

        annotate = annotationlib.get_annotate_from_class_namespace(namespace)
        return annotationlib.call_annotate_function(annotate, annotationlib.Format.VALUE) if annotate else {}
    found: dict[str, Any] = namespace.get("__annotations__", {})
    return found


def read_field(name: str, hint: Any, rule: Any) -> Field:
    if not isinstance(rule, Rule):
        raise TypeError(f"{name}: write `= field(default={rule!r})`")
    optional = type(None) in get_args(hint)
    if optional:
        (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
    is_list = get_origin(hint) is list
    if is_list:
        (hint,) = get_args(hint)
    kind = get_args(hint)[1] if get_origin(hint) is Annotated else hint
    if not isinstance(kind, Kind) and not is_struct(kind):
        raise TypeError(f"{name}: {hint!r} does not travel")
    return Field(name, rule, kind, is_list, optional)


def msgspec_default(spec: Field) -> Any:
    if spec.rule.default is ... and (spec.is_list or is_struct(spec.kind)):
        return msgspec.field(default_factory=list if spec.is_list else spec.kind)
    return spec.make_default()


def is_struct(kind: Any) -> bool:
    return isinstance(kind, Declaration)


class Declaration(msgspec.StructMeta):
    """Reads the fields off a class, and gives each that has no default the zero of its type.

    To type checkers a field without `= field(...)` must be given; whoever is unchecked gets Kafka's zeros.
    """

    fields: dict[str, Field]
    versions: Versions
    flexible: Versions
    api_key: int

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: int | None = None,
        versions: str | None = None,
        flexible: str | None = None,
    ) -> "Declaration":
        fields = {
            each: read_field(each, hint, namespace.get(each, Rule()))
            for each, hint in annotations(namespace).items()
            if get_origin(hint) is not ClassVar
        }
        namespace |= {each: msgspec_default(spec) for each, spec in fields.items()}
        cls = super().__new__(mcls, name, bases, namespace, gc=False)
        cls.fields = fields
        if key is not None:
            cls.api_key = key
        if versions is not None:
            cls.versions = Versions.parse(versions)
        if flexible is not None:
            cls.flexible = Versions.parse(flexible)
        return cls


@dataclass_transform(kw_only_default=True)
class Struct(msgspec.Struct, metaclass=Declaration):
    """A group of fields: a whole message, or a part of one."""


class Body(Struct, versions="none", flexible="none"):
    """A message that travels by itself, and so has versions."""

    versions: ClassVar[Versions]
    flexible: ClassVar[Versions]
    api_key: ClassVar[int]


class Request(Body, key=-1):
    """What a client asks."""


class Response(Body, key=-1):
    """What a broker answers."""


class Data(Body):
    """Something kept in a record, or carried inside of another message."""


class Key(Data, key=-1):
    """What a coordinator's record is about.  Stored behind its number, which says what kind it is."""


class Value(Data, key=-1):
    """What a coordinator's record says.  Stored behind its version."""
