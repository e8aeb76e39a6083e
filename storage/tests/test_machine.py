"""A log and a plain list, told the same things in any order, agree.

The list holds every batch that was acknowledged.  What producers may do, which transactions are open and
which were aborted is worked out from it anew each time; the log has to know the same, also after truncations,
crashes and compaction."""

import dataclasses
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trilogue.storage import cleaner
from trilogue.storage.config import LogConfig
from trilogue.storage.log import Log
from trilogue.storage.producers import Origin
from trilogue.storage.tests.making import NOW
from trilogue.wire.compression import Codec
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import Record, build, end_transaction_marker

Pairs = tuple[tuple[int, bytes, bytes | None], ...]
KEYS = st.sampled_from([b"a", b"b", b"c", b"a key longer than a digest"])
VALUES = st.lists(st.tuples(KEYS, st.binary(max_size=30) | st.none()), min_size=1, max_size=5)
PRODUCERS = st.sampled_from([1, 2, 3])


@dataclass(frozen=True)
class Written:
    """A batch as the model remembers it."""

    base: int
    last: int
    pairs: Pairs
    producer: int = -1
    sequence: int = -1
    transactional: bool = False
    marker: bool | None = None
    """Of a control batch: whether it commits."""


class Everything(RuleBasedStateMachine):
    compact = False

    @initialize()
    def start(self) -> None:
        self.root = tempfile.mkdtemp()
        self.path = Path(self.root) / "t-0"
        self.config = LogConfig(
            segment_bytes=700,
            index_interval_bytes=150,
            compact=self.compact,
            delete=not self.compact,
            min_cleanable_dirty_ratio=0.0,
            retention_ms=50_000,
            retention_bytes=5000,
            delete_retention_ms=20_000,
        )
        self.now = NOW
        self.log = Log.open(self.path, self.config, self.now)
        self.batches: list[Written] = []
        """In the log."""
        self.history: list[Written] = []
        """And what has gone from its front: producers are remembered longer."""
        self.epoch = 0

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close(clean=False)
            shutil.rmtree(self.root)

    # ---- the model ---------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[int, int], dict[int, int], list[tuple[int, int, int]]]:
        """Next sequence per producer, first offset of each open transaction, and the aborted ones."""
        following: dict[int, int] = {}
        open_: dict[int, int] = {}
        aborted: list[tuple[int, int, int]] = []
        for written in self.history + self.batches:
            if written.marker is not None:
                start = open_.pop(written.producer, None)
                if start is not None and not written.marker:
                    aborted.append((written.producer, start, written.base))
            elif written.producer >= 0:
                following[written.producer] = written.sequence + written.last - written.base + 1
                if written.transactional:
                    open_.setdefault(written.producer, written.base)
        return following, open_, aborted

    def view(self, batches: list[Written]) -> dict[bytes, bytes]:
        """What a consumer of everything that was not aborted knows in the end."""
        _, _, aborted = self.state()
        known: dict[bytes, bytes] = {}
        for written in batches:
            if written.transactional and any(
                producer == written.producer and first <= written.base < last for producer, first, last in aborted
            ):
                continue
            for _, key, value in written.pairs:
                if value is None:
                    known.pop(key, None)
                else:
                    known[key] = value
        return known

    def seen(self) -> list[Written]:
        """The batches that the log gives out, as far as the model looks at them."""
        return [
            Written(
                found.header.base_offset,
                found.header.last_offset,
                ()
                if found.header.control
                else tuple(
                    (record.offset, bytes(record.key or b""), None if record.value is None else bytes(record.value))
                    for record in found.records()
                ),
            )
            for found in self.log.batches(self.log.segments[0].base_offset if self.log.segments else 0)
        ]

    def plainly(self, batches: list[Written]) -> list[Written]:
        return [Written(written.base, written.last, written.pairs) for written in batches]

    def remember(self, pairs: list[tuple[bytes, bytes | None]], base: int, **more: object) -> None:
        numbered = tuple((base + number, key, value) for number, (key, value) in enumerate(pairs))
        self.batches.append(Written(base, base + max(len(pairs), 1) - 1, numbered, **more))  # type: ignore[arg-type]

    # ---- what can happen ---------------------------------------------------------------------------------

    def append(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec = Codec.NONE, **fields: int) -> int:
        self.now += 10
        records = [Record(number, self.now, key, value) for number, (key, value) in enumerate(pairs)]
        sent = memoryview(build(records, codec=codec, **fields))  # type: ignore[arg-type]
        result = self.log.append_as_leader(sent, leader_epoch=self.epoch, now_ms=self.now)
        assert not result.duplicate
        assert result.last_offset - result.base_offset == len(pairs) - 1
        return result.base_offset

    @rule(pairs=VALUES, codec=st.sampled_from(Codec))
    def append_plain(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        base = self.log.end_offset
        assert self.append(pairs, codec) == base
        self.remember(pairs, base)

    @rule(pairs=VALUES, producer=PRODUCERS, transactional=st.booleans())
    def append_idempotent(self, pairs: list[tuple[bytes, bytes | None]], producer: int, transactional: bool) -> None:
        following, open_, _ = self.state()
        sequence = following.get(producer, 0)
        transactional = transactional or producer in open_
        fields = {
            "producer_id": producer,
            "producer_epoch": 0,
            "base_sequence": sequence,
            "transactional": transactional,
        }
        base = self.log.end_offset
        assert self.append(pairs, **fields) == base
        self.remember(pairs, base, producer=producer, sequence=sequence, transactional=transactional)

    @rule(producer=PRODUCERS, gap=st.integers(2, 5))
    def append_with_a_gap(self, producer: int, gap: int) -> None:
        following, open_, _ = self.state()
        if producer not in following:
            return
        before = self.log.end_offset
        with pytest.raises(BrokerError) as refusal:
            self.append(
                [(b"a", b"lost")],
                producer_id=producer,
                producer_epoch=0,
                base_sequence=following[producer] + gap,
                transactional=producer in open_,
            )
        assert refusal.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert self.log.end_offset == before

    @rule(producer=PRODUCERS)
    def repeat_the_last(self, producer: int) -> None:
        mine = [
            written
            for written in self.history + self.batches
            if written.producer == producer and written.marker is None
        ]
        if not mine:
            return
        last = mine[-1]
        sent = build(
            [Record(number, NOW, b"again", b"") for number in range(last.last - last.base + 1)],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=last.sequence,
            transactional=last.transactional,
        )
        result = self.log.append_as_leader(memoryview(sent), leader_epoch=self.epoch, now_ms=self.now)
        assert (result.base_offset, result.last_offset, result.duplicate) == (last.base, last.last, True)

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        self.now += 10
        marker = end_transaction_marker(commit, 0, producer, 0, self.now)
        base = self.log.end_offset
        self.log.append_as_leader(
            memoryview(marker), leader_epoch=self.epoch, now_ms=self.now, origin=Origin.COORDINATOR
        )
        self.remember([], base, producer=producer, marker=commit)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1
        self.log.begin_epoch(self.epoch)
        assert self.log.epoch_end_offset(self.epoch) == (self.epoch, self.log.end_offset)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now)

    @rule()
    def flush(self) -> None:
        self.log.flush(self.now)
        assert self.log.recovery_point == self.log.end_offset

    @rule(part=st.floats(0, 1), most=st.integers(1, 2000), limit=st.floats(0, 1))
    def read(self, part: float, most: int, limit: float) -> None:
        log = self.log
        span = log.end_offset - log.start_offset
        offset = log.start_offset + int(part * span)
        up_to = log.start_offset + int(limit * span)
        found = log.read(offset, most, up_to=up_to)
        readable = [written for written in self.batches if written.last >= offset and written.last < up_to]
        if found is None:
            assert not readable or offset >= up_to
            return
        assert found.base_offset == readable[0].base
        assert len(found.read()) == len(found)
        assert found.size <= most or found.size == int.from_bytes(found.read()[8:12], "big") + 12

    @rule(part=st.floats(0, 1))
    def look_up(self, part: float) -> None:
        timestamp = NOW + int(part * (self.now - NOW))
        found = self.log.offset_for_timestamp(timestamp)
        stamped = [
            (record.timestamp, record.offset)
            for batch in self.log.batches(self.log.start_offset)
            for record in batch.records()
            if record.timestamp >= timestamp and record.offset >= self.log.start_offset
        ]
        assert (found and found[:2]) == (stamped[0] if stamped else None)

    @rule(part=st.floats(0.3, 1))
    def truncate(self, part: float) -> None:
        boundaries = [written.base for written in self.batches] + [self.log.end_offset]
        offset = boundaries[int(part * (len(boundaries) - 1))]
        self.log.truncate_to(offset, self.now)
        assert self.log.end_offset == offset
        self.batches = [written for written in self.batches if written.last < offset]
        self.epoch += 1

    @rule()
    def truncate_fully(self) -> None:
        offset = self.log.end_offset + 5
        self.log.truncate_fully_and_start_at(offset, self.now)
        self.batches, self.history = [], []
        assert (self.log.start_offset, self.log.end_offset) == (offset, offset)

    @rule(part=st.floats(0, 1))
    def raise_start(self, part: float) -> None:
        log = self.log
        offset = log.start_offset + int(part * (log.end_offset - log.start_offset) / 2)
        log.raise_start(offset, log.end_offset)
        assert log.start_offset >= offset

    @rule(passed_ms=st.sampled_from([0, 1000, 60_000]), high=st.floats(0.5, 1))
    def expire(self, passed_ms: int, high: float) -> None:
        self.now += passed_ms
        log = self.log
        high_watermark = log.start_offset + int(high * (log.end_offset - log.start_offset))
        log.expire(self.now, high_watermark)
        log.sweep(self.now)
        first = log.segments[0].base_offset if log.segments else 0
        gone = [written for written in self.batches if written.last < first]
        assert all(written.last < high_watermark for written in gone)
        self.history += gone
        self.batches = self.batches[len(gone) :]
        assert log.start_offset >= first

    def reopen(self, clean: bool) -> None:
        before = self.log
        before.close(clean=clean, now_ms=self.now)
        self.log = Log.open(
            self.path,
            self.config,
            self.now,
            clean=clean,
            start_offset=before.start_offset,
            recovery_point=before.recovery_point,
            clean_offset=before.clean_offset,
        )

    @rule(clean=st.booleans())
    def close_and_open(self, clean: bool) -> None:
        end = self.log.end_offset
        self.reopen(clean)
        assert self.log.end_offset == end or not self.log.segments

    @rule(part=st.floats(0, 1))
    @precondition(lambda self: self.log.segments)
    def crash_with_a_torn_tail(self, part: float) -> None:
        """What was not flushed may be lost, from any byte on."""
        if self.log.start_offset > self.log.recovery_point:
            self.log.flush(self.now)  # the start is checkpointed only for what is safe
        segment = self.log.segments[-1]
        safe = segment.find(self.log.recovery_point)
        position = segment.size if safe is None else safe[0]
        self.log.close(clean=False)
        path = segment.path(".log")
        with open(path, "r+b") as file:
            file.truncate(position + int(part * (segment.size - position)))
        recovery_point = self.log.recovery_point
        self.reopen(clean=False)
        assert self.log.end_offset >= recovery_point
        self.batches = [written for written in self.batches if written.last < self.log.end_offset]
        self.epoch += 1

    # ---- what always holds -------------------------------------------------------------------------------

    @invariant()
    def same_batches(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.seen() == self.plainly(self.batches)

    @invariant()
    def same_producers_and_transactions(self) -> None:
        if not hasattr(self, "log"):
            return
        following, open_, aborted = self.state()
        log = self.log
        known = {producer.id: producer for producer in log.producers()}
        assert {key: known[key].last_sequence + 1 for key in following} == following
        assert {key: known[key].transaction_start for key in known if known[key].transaction_start >= 0} == open_
        assert log.last_stable_offset(log.end_offset) == min(
            [max(start, log.start_offset) for start in open_.values()], default=log.end_offset
        )
        first = log.start_offset
        expected = sorted(entry[1] for entry in aborted if entry[2] >= first and self.is_in_log(entry[2]))
        assert [entry.first_offset for entry in log.aborted_between(first, log.end_offset)] == expected

    def is_in_log(self, marker: int) -> bool:
        return any(written.base == marker for written in self.batches)


class Compacted(Everything):
    """The same with compaction, which may drop what a later record replaces, and nothing else."""

    compact = True

    @rule(passed_ms=st.sampled_from([0, 1000, 60_000]), dedupe_bytes=st.sampled_from([400, 1 << 20]))
    def clean(self, passed_ms: int, dedupe_bytes: int) -> None:
        self.now += passed_ms
        plan = cleaner.plan(self.log, self.now, self.log.end_offset)
        if plan is None:
            return
        before = self.view(self.batches)
        originals = {written.base: written for written in self.batches}
        cleaned = plan.run(dedupe_bytes=dedupe_bytes)
        assert cleaner.adopt(self.log, cleaned, self.now)
        self.log.sweep(self.now + 100_000)
        kept = []
        for seen in self.seen():
            original = originals[seen.base]
            assert seen.last == original.last
            assert set(seen.pairs) <= set(original.pairs)
            kept.append(dataclasses.replace(original, pairs=seen.pairs))
        gone = [written for written in self.batches if written.base not in {seen.base for seen in kept}]
        state = self.state()
        self.history = sorted(self.history + gone, key=lambda written: written.base)
        self.batches = kept
        self.archive(state)
        assert self.view(self.batches) == before
        assert not self.batches or self.batches[-1].last == self.log.end_offset - 1 or not self.log.segments[-1].size

    def archive(self, state: object) -> None:
        """Batches went from the middle: producers are still known, in the order things happened."""

    def state(self) -> tuple[dict[int, int], dict[int, int], list[tuple[int, int, int]]]:
        together = sorted(self.history + self.batches, key=lambda written: written.base)
        batches, history, self.batches, self.history = self.batches, self.history, together, []
        try:
            return super().state()
        finally:
            self.batches, self.history = batches, history

    @rule(part=st.floats(0.3, 1))
    def truncate(self, part: float) -> None:
        """Not combined with compaction here: what went from the middle is not known to have been before the
        cut."""

    @rule(producer=PRODUCERS)
    def repeat_the_last(self, producer: int) -> None:
        """As above, but the last batch may have been emptied."""
        super().repeat_the_last(producer)

    @invariant()
    def same_producers_and_transactions(self) -> None:
        if not hasattr(self, "log"):
            return
        _, open_, _ = self.state()
        known = {producer.id: producer for producer in self.log.producers()}
        assert {key: known[key].transaction_start for key in known if known[key].transaction_start >= 0} == open_


QUICK = settings(max_examples=12, stateful_step_count=25, deadline=None)
LONG = settings(max_examples=300, stateful_step_count=60, deadline=None)

TestEverything = Everything.TestCase
TestEverything.settings = QUICK
TestCompacted = Compacted.TestCase
TestCompacted.settings = QUICK


@pytest.mark.slow
class TestEverythingAtLength(Everything.TestCase):
    settings = LONG


@pytest.mark.slow
class TestCompactedAtLength(Compacted.TestCase):
    settings = LONG
