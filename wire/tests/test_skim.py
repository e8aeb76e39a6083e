"""Records looked at without being made: the same as those that are."""

import pytest

from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import HEADER_SIZE, HEADERS_MAX, Batch, Record, build, read_header, walk, wrapped
from trilogue.wire.skim import add_up, skim

NOW_MS = 1_700_000_000_000
RECORDS = [
    Record(0, NOW_MS, b"key", b"value"),
    Record(1, NOW_MS + 70, None, b"v" * 200),
    Record(2, NOW_MS + 9000, b"", None, [("name", b"x" * 70), ("none", None)]),
    Record(3, NOW_MS + 9000, b"k" * 9000, b""),
]


def parts(records: list[Record]) -> Batch:
    built = memoryview(build(records))
    return Batch(read_header(built), built)


def test_what_is_seen_is_what_the_records_say() -> None:
    batch = parts(RECORDS)

    seen = list(skim(batch.inflated(), batch.header))

    assert seen == [(each.offset, each.timestamp, each.key is not None) for each in RECORDS]
    assert add_up(batch.inflated(), batch.header)


@pytest.mark.parametrize("count", [3, 5])
def test_another_count_does_not_add_up(count: int) -> None:
    batch = parts(RECORDS)
    header = batch.header._replace(count=count)

    assert not add_up(batch.inflated(), header)
    with pytest.raises(MalformedMessage):
        list(skim(batch.inflated(), header))


def test_no_beginning_of_the_bytes_adds_up() -> None:
    batch = parts(RECORDS)
    data = batch.inflated()
    for size in range(len(data)):
        assert not add_up(data[:size], batch.header)


def test_times_out_of_the_range_of_the_header_do_not_add_up() -> None:
    batch = parts(RECORDS)

    assert not add_up(batch.inflated(), batch.header._replace(max_timestamp=NOW_MS + 8999))
    assert not add_up(batch.inflated(), batch.header._replace(base_timestamp=-2))
    assert add_up(batch.inflated(), batch.header._replace(max_timestamp=NOW_MS + 9000))


def test_sums_come_back_from_the_other_side_as_in_java() -> None:
    assert [wrapped(2**63 - 1), wrapped(2**63), wrapped(-(2**63) - 1)] == [2**63 - 1, -(2**63), 2**63 - 1]
    batch = parts([Record(0, 5, b"k", b"v"), Record(1, 6, b"k", b"v"), Record(2, 5 + 2**40, b"k", b"v")])
    for base in (2**63 - 1, 2**63 - 2**40, -(2**63)):
        header = batch.header._replace(base_timestamp=base)
        expected = [wrapped(base), wrapped(base + 1), wrapped(base + 2**40)]
        assert [each.timestamp for each in walk(batch.inflated(), header)] == expected
        assert [timestamp for _, timestamp, _ in skim(batch.inflated(), header)] == expected


@pytest.mark.parametrize(("count", "good"), [(HEADERS_MAX, True), (HEADERS_MAX + 1, False)])
def test_a_record_has_so_many_headers_and_no_more(count: int, good: bool) -> None:
    batch = parts([Record(0, NOW_MS, b"k", b"v", [("", None)] * count)])

    assert add_up(batch.inflated(), batch.header) is good
    if not good:
        with pytest.raises(MalformedMessage, match="headers declared"):
            list(batch.records())


def test_the_header_is_no_part_of_it() -> None:
    batch = parts(RECORDS)

    assert batch.inflated() == batch.view[HEADER_SIZE:]
