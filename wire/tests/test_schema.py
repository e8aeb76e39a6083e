"""Declaring a message."""

import subprocess
import sys

import pytest

from trilogue.wire.schema import Int32, Request, String, Struct, Uuid, Versions, field
from trilogue.wire.trees import tree


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("3", [3], [2, 4]),
        ("3-7", [3, 7], [2, 8]),
        ("3+", [3, 9000], [2]),
        ("none", [], [0, 1]),
        ("", [], [0, 1]),
    ],
)
def test_versions(text, inside, outside):
    versions = Versions.parse(text)

    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert str(versions) == (text or "none")


def test_fields_have_the_zero_of_their_type_and_lists_are_not_shared():
    class Inner(Struct):
        n: Int32 = field(default=-1)

    class Outer(Struct):
        name: String
        topic_id: Uuid
        inner: Inner
        inners: list[Inner]
        perhaps: Inner | None = field(default=None)

    one, other = Outer(), Outer()
    one.inners.append(Inner())
    one.inner.n = 5

    assert other == Outer(name="", topic_id=bytes(16), inner=Inner(n=-1), inners=[], perhaps=None)


def test_a_field_may_be_called_like_anything_kafka_calls_it():
    class Odd(Request, key=7, versions="0-1"):
        key: String

    assert (Odd.api_key, Odd(key="k").key) == (7, "k")


def test_a_default_must_be_said_through_field():
    with pytest.raises(TypeError, match=r"write `= field\(default=3\)`"):

        class Wrong(Struct):
            n: Int32 = 3


def test_what_does_not_travel_is_refused():
    with pytest.raises(TypeError, match="does not travel"):

        class Wrong(Struct):
            n: int


def test_a_version_that_never_was_is_an_error_of_the_caller():
    class Known(Request, key=1, versions="2-3"):
        n: Int32

    with pytest.raises(ValueError, match="Known has versions 2-3, not 4"):
        tree(Known, 4)


def test_declaring_imports_neither_construct_nor_what_records_need():
    code = (
        "import sys, trilogue.wire, trilogue.wire.schema, trilogue.wire.frame, trilogue.wire.records\n"
        "import trilogue.wire.catalog; trilogue.wire.catalog.everything()\n"
        "print(*(name for name in ('construct', 'crc32c', 'cramjam', 'trio', 'kafka') if name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
