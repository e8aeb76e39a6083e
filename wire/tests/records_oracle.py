"""What the tests of records share: made-up records, and Kafka's own opinion of them (java/RecordsOracle.java)."""

import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from trilogue.wire.compression import Bytes, Codec
from trilogue.wire.records import Batch, Record, batches

with warnings.catch_warnings():  # it reads its own files in a way that Python has given up
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

Java = Callable[..., list[str]]

SOURCES = Path(__file__).parent / "java"


def run(java: Java, jar_set: str, program: str, lines: Iterable[str] = ()) -> list[str]:
    """What a program in `java/` answers, line for line."""
    done = subprocess.run(
        java(jar_set, str(SOURCES / program)), input="\n".join(lines), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def ask(java: Java, lines: Iterable[str]) -> list[str]:
    return run(java, "clients-4.4.0", "RecordsOracle.java", lines)


def word(record: Record) -> str:
    headers = "".join(f"/{_text(name)}={_hex(value)}" for name, value in record.headers)
    return f"{record.offset}/{record.timestamp}/{_hex(record.key)}/{_hex(record.value)}{headers}"


def _text(name: str) -> str:
    """As Java has it, which puts a mark in place of what is not text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode().hex()


def said(buf: Bytes) -> str:
    """Our reading of batches in the words of RecordsOracle's `read`."""
    return " ".join(word for batch in batches(buf) for word in _batch_said(batch))


def _batch_said(batch: Batch) -> Iterator[str]:
    assert batch.crc_ok()
    header = batch.header
    yield ",".join(
        map(
            str,
            (
                "batch",
                header.base_offset,
                header.last_offset,
                int(header.codec),
                int(header.log_append_time),
                header.max_timestamp,
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
                str(header.transactional).lower(),
                str(header.control).lower(),
                header.partition_leader_epoch,
                header.count,
                header.base_timestamp if header.has_delete_horizon else -1,
            ),
        )
    )
    yield from map(word, batch.records())


def kafka_python_reads(buf: Bytes) -> list[Record]:
    records = []
    for batch in MemoryRecords(bytes(buf)):
        assert batch.validate_crc()
        records += [Record(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in batch]
    return records


def kafka_python_builds(records: Iterable[Record], magic: int, codec: Codec) -> bytes:
    builder = MemoryRecordsBuilder(magic=magic, compression_type=int(codec), batch_size=1 << 30)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, list(record.headers))
    builder.close()
    return bytes(builder.buffer())


def copied(records: Iterable[Record]) -> list[Record]:
    """The records with bytes in place of views, so that they can be compared and printed."""
    return [
        Record(
            offset,
            timestamp,
            _bytes(key),
            _bytes(value),
            tuple((name, _bytes(content)) for name, content in headers),
        )
        for offset, timestamp, key, value, headers in records
    ]


def _bytes(part: Bytes | None) -> bytes | None:
    return None if part is None else bytes(part)


def _hex(part: Bytes | None) -> str:
    return "-" if part is None else part.hex()


content = st.none() | st.binary(max_size=200)
timestamps = st.integers(-1, 2**42) | st.integers(0, 200)


@st.composite
def some_records(
    draw: st.DrawFn, base_offset: int = 0, headers: bool = True, most: int = 8, gaps: bool = True
) -> list[Record]:
    """At least one record; offsets begin at `base_offset` and may leave gaps."""
    records, offset = [], base_offset
    names = st.lists(st.tuples(st.text(max_size=20), content), max_size=3).map(tuple) if headers else st.just(())
    for _ in range(draw(st.integers(1, most))):
        records.append(Record(offset, draw(timestamps), draw(content), draw(content), draw(names)))
        offset += draw(st.sampled_from([1, 1, 1, 2, 70, 10_000])) if gaps else 1
    return records


def random_records(random: Random, base_offset: int = 0, headers: bool = True, gaps: bool = True) -> list[Record]:
    """The same for tests that ask Java about many at once."""

    def part(largest: int = 9000) -> bytes | None:
        length = random.choice([-1, 0, 1, 63, 64, 100, 8191, 8192, largest])
        return None if length < 0 else random.randbytes(min(length, largest))

    records, offset = [], base_offset
    base_timestamp = random.choice([0, 1000, 1_700_000_000_000])
    for _ in range(random.choice([1, 2, 3, 10, 70])):
        timestamp = max(-1, base_timestamp + random.choice([-1, 0, 1, 63, 64, 8192, 2**33, -64, -65, -9000]))
        names = [(random.choice(["", "h", "naïve", "x" * 70]), part(100)) for _ in range(random.choice([0, 0, 1, 3]))]
        records.append(Record(offset, timestamp, part(100), part(), tuple(names) if headers else ()))
        offset += random.choice([1, 1, 1, 2, 64, 9000]) if gaps else 1
    return records
