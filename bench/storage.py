"""The log, measured: appends beside bare `os.pwrite`, look-ups, opening, recovery, compaction.

    python -m bench.storage [FOLDER]        the folder decides the file system; default: the temporary one

Ratios are taken within this run: the two sides take turns, and each row is a median.  Memory is touched first, because
pages that the host has not backed yet would otherwise be what is measured.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from trilogue.storage import cleaner
from trilogue.storage.config import LogConfig
from trilogue.storage.directory import DataDirectory
from trilogue.storage.index import OFFSET_ENTRY
from trilogue.storage.log import Log
from trilogue.wire.records import HEADER_SIZE, Record, build, checksum

NOW = 1_700_000_000_000
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ROUNDS = 15
ROUND_BYTES = 128 * MIB
RING_BYTES = 128 * KIB
"""As large as the broker's receive buffer: batches come from memory that was just written."""


def batch(size: int, **fields: int) -> bytearray:
    """A batch of about `size` bytes, in records of 1 KiB."""
    count = max(size // KIB, 1)
    body = os.urandom(min(size, KIB) - 12)
    return build([Record(number, NOW + number, None, body) for number in range(count)], **fields)  # type: ignore[arg-type]


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


AHEAD_BYTES = 512 * MIB
"""More than one turn of a benchmark writes.  A virtual machine gives memory that has become free back to its host
within seconds, and gets it again at a quarter of a GB/s: whoever is measured first would pay for both."""


def touch_memory(folder: Path, size: int) -> None:
    path = folder / "touch"
    with open(path, "wb") as file:
        file.writelines(bytes(MIB) for _ in range(size // MIB))
    path.unlink()


# ---- appending -------------------------------------------------------------------------------------------


def bare(folder: Path, ring: list[memoryview], count: int) -> float:
    """Microseconds per pwrite of the same bytes to the same positions."""
    path = folder / "bare"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    position, size, many = 0, len(ring[0]), len(ring)

    def write() -> None:
        nonlocal position
        for number in range(count):
            os.pwrite(fd, ring[number % many], position)
            position += size

    spent = seconds(write)
    os.close(fd)
    path.unlink()
    return spent / count * 1e6


def appended(folder: Path, ring: list[memoryview], count: int, idempotent: bool) -> float:
    """Microseconds per append; what a client would have done to the bytes before is not counted."""
    log = Log.open(folder / "append-0", LogConfig(max_message_bytes=2 * MIB), NOW)
    sequence = 0
    spent = 0.0
    done = 0
    while done < count:
        for view in ring:
            view[:8] = bytes(8)
            if idempotent:
                sequence = _number(view, sequence)
        todo = ring[: count - done]

        def write(todo: list[memoryview] = todo) -> None:
            for view in todo:
                log.append_as_leader(view, leader_epoch=0, now_ms=NOW)

        spent += seconds(write)
        done += len(todo)
    log.close(clean=False)
    shutil.rmtree(folder / "append-0")
    return spent / count * 1e6


def _number(view: memoryview, sequence: int) -> int:
    """Give a batch of producer 1 its next sequence number, and sign it."""
    view[53:57] = sequence.to_bytes(4, "big")
    view[17:21] = checksum(view[21:]).to_bytes(4, "big")
    return sequence + int.from_bytes(view[57:61], "big")


def appends(folder: Path) -> None:
    print(f"{'append':32}{'bare pwrite':>14}{'Log':>10}{'ratio':>8}   target")
    for size, target in ((KIB, ""), (16 * KIB, ">= 0.60"), (128 * KIB, ""), (MIB, ">= 0.90")):
        for idempotent in (False, True):
            fields = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0} if idempotent else {}
            sample = batch(size, **fields)
            ring = [memoryview(bytearray(sample)) for _ in range(max(RING_BYTES // len(sample), 1))]
            count = max(min(ROUND_BYTES // size, 8192), 512)
            plain, ours = [], []
            for _ in range(ROUNDS if size < MIB else 7):
                plain.append(bare(folder, ring, count))
                ours.append(appended(folder, ring, count, idempotent))
            one, two = statistics.median(plain), statistics.median(ours)
            name = f"{size // KIB} KiB{', idempotent' if idempotent else ''}"
            print(f"  {name:30}{one:11.1f} us{two:7.1f} us{one / two:8.2f}   {'' if idempotent else target}")


# ---- looking up ------------------------------------------------------------------------------------------

SPARSE_BATCH = 256 * KIB


def sparse(folder: Path, size: int) -> Log:
    """A log of that size with headers in place and holes between them."""
    folder.mkdir()
    header = bytearray(batch(KIB)[:HEADER_SIZE])
    header[8:12] = (SPARSE_BATCH - 12).to_bytes(4, "big")
    offset = 0
    while size:
        part = min(size, GIB)
        name = folder / f"{offset:020d}.log"
        fd = os.open(name, os.O_RDWR | os.O_CREAT)
        entries = bytearray()
        base = offset
        for position in range(0, part, SPARSE_BATCH):
            header[:8] = offset.to_bytes(8, "big")
            os.pwrite(fd, header, position)
            entries += OFFSET_ENTRY.pack(offset - base, position)
            offset += 1
        os.ftruncate(fd, part)
        os.close(fd)
        name.with_suffix(".index").write_bytes(entries[8:])
        name.with_suffix(".timeindex").write_bytes(b"")
        size -= part
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    return Log.open(folder, LogConfig(), NOW, clean=True)


def look_ups(folder: Path) -> None:
    logs = {size: sparse(folder / f"sparse-{size}", size) for size in (100 * MIB, 10 * GIB)}
    spent: dict[int, list[float]] = {size: [] for size in logs}
    for _ in range(ROUNDS):
        for size, log in logs.items():
            step = max(log.end_offset * 7919 // 10_000, 1)
            offsets = [number * step % (log.end_offset - 1) for number in range(2000)]

            def read(log: Log = log, offsets: list[int] = offsets) -> None:
                for offset in offsets:
                    log.read(offset, 100, up_to=log.end_offset)

            spent[size].append(seconds(read) / len(offsets) * 1e6)
    small, large = (statistics.median(times) for times in spent.values())
    print(f"look-up, 100 MiB / 10 GiB sparse  {small:.1f} / {large:.1f} us, {large / small:.2f}x   target <= 2x")
    for log in logs.values():
        log.close(clean=False)


# ---- opening ---------------------------------------------------------------------------------------------


def many(folder: Path, count: int) -> None:
    """`count` partitions that were written to once and closed properly."""
    node = DataDirectory(folder, cluster_id="bench", node_id=1, new_id=(1).to_bytes(16, "big"))
    log = node.open_log("t", 0, LogConfig(), NOW, (2).to_bytes(16, "big"))
    for number in range(3):
        sent = batch(KIB, producer_id=number, producer_epoch=0, base_sequence=0)
        log.append_as_leader(memoryview(sent), leader_epoch=0, now_ms=NOW)
    node.close({("t", 0): log}, clean=True, now_ms=NOW)
    for number in range(1, count):
        shutil.copytree(folder / "t-0", folder / f"t-{number}", copy_function=shutil.copyfile)


def open_all(node: DataDirectory, topic: str, count: int) -> list[Log]:
    config = LogConfig()
    return [node.open_log(topic, number, config, NOW) for number in range(count)]


def openings(folder: Path) -> None:
    many(folder / "many", 10_000)
    for count, topic, target in ((1000, "t", "<= 1 s"), (10_000, "t", "<= 3 s"), (10_000, "u", "<= 3 s")):
        times = []
        for _ in range(3):
            (folder / "many/.kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
            node = DataDirectory(folder / "many", cluster_id="bench", node_id=1, new_id=(1).to_bytes(16, "big"))
            start = time.perf_counter()
            logs = open_all(node, topic, count)
            times.append(time.perf_counter() - start)
            assert all(log.end_offset == (3 if topic == "t" else 0) for log in logs)
            node.close({}, clean=False, now_ms=NOW)
        kind = "with files, clean end" if topic == "t" else "without files"
        print(f"open {count:6} partitions, {kind:22}  {statistics.median(times):5.2f} s   target {target}")
    for written in (True, False):
        tracemalloc.start()
        config = LogConfig()
        before = tracemalloc.get_traced_memory()[0]
        descriptors = len(os.listdir("/proc/self/fd"))
        topic = "t" if written else "u"
        logs = [Log.open(folder / f"many/{topic}-{number}", config, NOW, clean=True) for number in range(1000)]
        each = (tracemalloc.get_traced_memory()[0] - before) / len(logs)
        opened = len(os.listdir("/proc/self/fd")) - descriptors
        tracemalloc.stop()
        kind = "with files" if written else "without files"
        print(f"idle partition {kind:14}  {each / KIB:5.2f} KiB, {opened} descriptors in 1,000   target <= 8 KiB, 0")


def recovery(folder: Path) -> None:
    for size in (KIB, 16 * KIB, MIB):
        total = GIB if size > KIB else 128 * MIB
        sample = batch(size)
        log = Log.open(folder / "crashed-0", LogConfig(max_message_bytes=2 * MIB, segment_bytes=2 * GIB), NOW)
        for _ in range(total // len(sample)):
            sample[:8] = bytes(8)
            log.append_as_leader(memoryview(sample), leader_epoch=0, now_ms=NOW)
        written = log.size
        log.close(clean=False)
        times = [seconds(lambda: Log.open(folder / "crashed-0", LogConfig(), NOW)) for _ in range(3)]
        rate = written / statistics.median(times) / 1e6
        target = "   target >= 500 MB/s" if size == 16 * KIB else ""
        print(f"recovery of {written / MIB:5.0f} MiB in batches of {size // KIB:4} KiB  {rate:6.0f} MB/s{target}")
        shutil.rmtree(folder / "crashed-0")


def peak_memory(*, reset: bool = False) -> float:
    """MiB; since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / KIB


def compaction(folder: Path) -> None:
    config = LogConfig(compact=True, delete=False, segment_bytes=32 * MIB, min_cleanable_dirty_ratio=0.0)
    for size in (100, KIB):
        path = folder / f"compacted-{size}"
        log = Log.open(path, config, NOW)
        total, number = 0, 0
        while total < 128 * MIB:
            pairs = [
                Record(part, NOW, b"key-%d" % ((number * 100 + part) * 7919 % 50_000), os.urandom(size))
                for part in range(100)
            ]
            sent = build(pairs)
            log.append_as_leader(memoryview(sent), leader_epoch=0, now_ms=NOW)
            total += len(sent)
            number += 1
        log.roll(NOW)
        plan = cleaner.plan(log, NOW, log.end_offset)
        assert plan is not None
        before = peak_memory(reset=True)
        start = time.perf_counter()
        cleaned = plan.run()
        spent = time.perf_counter() - start
        grown = peak_memory() - before
        cleaner.adopt(log, cleaned, NOW)
        print(
            f"compaction, records of {size:4} bytes: {total / spent / 1e6:5.0f} MB/s, "
            f"{number * 100 / spent / 1e3:5.0f} k records/s, {cleaned.records_mapped} keys, "
            f"{log.size / total:.0%} left, peak memory +{grown:.0f} MiB"
        )
        log.close(clean=False)
        shutil.rmtree(path)


def main() -> None:
    folder = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None, prefix="bench-storage-"))
    try:
        touch_memory(folder, 2 * GIB)
        for part in (compaction, appends, look_ups, openings, recovery):
            part(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
