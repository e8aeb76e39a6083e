"""When all is healed: whether everybody comes back in sync, and whether what is there can be what clients were told."""

from typing import TYPE_CHECKING, NamedTuple

import trio

from trilogue.storage.log import Log
from trilogue.testing.simulation.laws import name
from trilogue.wire.records import ControlType, end_transaction

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster
    from trilogue.testing.simulation.history import History
    from trilogue.testing.simulation.laws import Key, Laws

WELL_SECONDS = 60.0
"""So soon everybody is in sync again, however bad it was; mostly it takes three or four."""


class Line(NamedTuple):
    offset: int
    value: str


class Content(NamedTuple):
    """What readers get of a log."""

    everything: list[Line]
    committed: list[Line]
    open: list[int]
    """Producers whose transactions have not ended."""


def content(log: Log) -> Content:
    everything: list[Line] = []
    pending: dict[int, list[Line]] = {}
    plain: list[Line] = []
    for batch in log.batches(log.start_offset):
        header = batch.header
        if header.control:
            end = end_transaction(batch)
            lines = pending.pop(header.producer_id, [])
            if end is not None and end.type is ControlType.COMMIT:
                plain += lines
            continue
        lines = [Line(each.offset, bytes(each.value or b"").decode()) for each in batch.records()]
        everything += lines
        if header.transactional:
            pending.setdefault(header.producer_id, []).extend(lines)
        else:
            plain += lines
    return Content(everything, sorted(plain), sorted(pending))


async def until_well(cluster: "Cluster", laws: "Laws") -> bool:
    """Everybody is there, in sync, and has the same."""
    with trio.move_on_after(WELL_SECONDS):
        while not is_well(cluster, laws):  # noqa: ASYNC110  it is time that is simulated
            await trio.sleep(0.1)
        return True
    cluster.blame("Converges", f"not well after {WELL_SECONDS:g} s: {complaint(cluster, laws)}")
    return False


def is_well(cluster: "Cluster", laws: "Laws") -> bool:
    return not complaint(cluster, laws)


def complaint(cluster: "Cluster", laws: "Laws") -> str:
    for host in cluster.hosts.values():
        if host.server is None or host.broker is None:
            return f"{host.name} does not serve"
    for key, state in laws.stored.items():
        if key[0] not in next(iter(cluster.hosts.values())).broker.image.topics:  # type: ignore[union-attr]
            continue
        if len(state.isr) != len(cluster.hosts):
            return f"{name(key)}: ISR {state.isr}"
        replicas = [host.broker.replicas.find(*key) for host in cluster.hosts.values() if host.broker is not None]
        if any(each is None for each in replicas):
            return f"{name(key)}: not everywhere"
        ends = [(each.log.end_offset, each.high_watermark) for each in replicas if each is not None]
        if len(set(ends)) != 1 or ends[0][0] != ends[0][1]:
            return f"{name(key)}: ends and high watermarks {ends}"
    return ""


class Ending:
    """The checker of queues: nothing acknowledged is lost, nothing is there twice, moved, in another order, or changed
    under a reader; of a transaction there is all or nothing, as its producer was told."""

    def __init__(self, cluster: "Cluster", laws: "Laws") -> None:
        self._cluster, self._laws = cluster, laws
        self.contents: dict[Key, Content] = {}

    def check(self) -> None:
        for key in sorted(self._laws.stored):
            self._replicas_are_the_same(key)
        self._check_writes(self._cluster.history)
        self._check_reads(self._cluster.history)
        self._check_transactions(self._cluster.history)

    def _blame(self, law: str, text: str) -> None:
        self._cluster.blame(law, text)

    def _replicas_are_the_same(self, key: "Key") -> None:
        logs: list[tuple[str, Log]] = []
        for host in self._cluster.hosts.values():
            partition = host.broker.replicas.find(*key) if host.broker is not None else None
            if partition is not None:
                logs.append((host.name, partition.log))
        # What was compacted is so on each by itself; behind that, they have to be the same.
        begin = max([0, *(max(log.start_offset, log.clean_offset) for _, log in logs)])
        found = [(who, b"".join(bytes(each.view) for each in log.batches(begin))) for who, log in logs]
        for who, data in found[1:]:
            if data != found[0][1]:
                self._blame("Same", f"{name(key)}: {who} and {found[0][0]} differ")
        if logs and not key[0].startswith("__"):
            self.contents[key] = content(logs[0][1])
            if self.contents[key].open:
                self._blame("Hanging", f"{name(key)}: transactions of {self.contents[key].open} have not ended")

    def _check_writes(self, history: "History") -> None:
        there = {key: {each.value: each.offset for each in found.everything} for key, found in self.contents.items()}
        for key, found in self.contents.items():
            if len(there[key]) != len(found.everything):
                values = [each.value for each in found.everything]
                twice = sorted({each for each in values if values.count(each) > 1})
                self._blame("Twice", f"{name(key)}: {twice[:5]}")
            last: dict[str, int] = {}
            for each in found.everything:
                who, _, number = each.value.rpartition("/")
                if number.isdigit() and int(number) <= last.get(who, -1):
                    self._blame("Order", f"{name(key)}: {each.value} at {each.offset}, after {who}/{last[who]}")
                last[who] = int(number) if number.isdigit() else -1
        for event in history.of("acked"):
            key, offset = (event.more["topic"], event.more["partition"]), event.more["offset"]
            for position, value in enumerate(event.more["values"]):
                found_at = there.get(key, {}).get(value)
                if found_at is None:
                    self._blame("Lost", f"{name(key)}: {value}, acknowledged at {offset} ({event.t})")
                elif offset is not None and found_at != offset + position:
                    self._blame("Moved", f"{name(key)}: {value}, acknowledged at {offset + position}, is at {found_at}")

    def _check_reads(self, history: "History") -> None:
        following: dict[object, int] = {}
        shown = {
            (key, isolation): dict(found.committed if isolation == "committed" else found.everything)
            for key, found in self.contents.items()
            for isolation in ("committed", "uncommitted")
        }
        for event in history.of("read"):
            key = (event.more["topic"], event.more["partition"])
            lines = shown.get((key, event.more["isolation"]), {})
            reader = (event.who, event.more["life"], key)
            for offset, value in event.more["found"]:
                if offset < following.get(reader, 0):
                    self._blame("Back", f"{event.who} was given {name(key)} {offset} after {following[reader] - 1}")
                following[reader] = offset + 1
                if lines.get(offset) != value:
                    self._blame(
                        "Changed",
                        f"{event.who} ({event.more['isolation']}) has read {value} at {name(key)} {offset}: there is "
                        f"{lines.get(offset)}",
                    )

    def _check_transactions(self, history: "History") -> None:
        """By their values: each transaction's begin with its name."""
        outcomes = {event.more["number"]: event.more["outcome"] for event in history.of("ended")}
        committed = {each.value for found in self.contents.values() for each in found.committed}
        written: dict[str, list[str]] = {}
        for event in history.of("wrote"):
            written.setdefault(event.more["number"], []).extend(event.more["values"])
        for number, values in written.items():
            there = [each for each in values if each in committed]
            outcome = outcomes.get(number, "unknown")
            if there and len(there) != len(values):
                self._blame("Torn", f"transaction {number} ({outcome}): of {values} only {there} can be read")
            elif outcome == "committed" and not there:
                self._blame("Ghost", f"transaction {number} was committed, and of {values} nothing can be read")
            elif outcome == "aborted" and there:
                self._blame("Ghost", f"transaction {number} was aborted, and {there} can be read")
