"""One partition on this broker: its log, its role, its high watermark, and who waits for it.

The high watermark is how far every replica in sync has come; consumers read below it.  It is moved by `_advance`
and by nothing else.  A decision and its write have no `await` between them: that is the lock.
"""

import logging
from collections import deque
from collections.abc import Callable, Container
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple

import trio

from trilogue.broker.cluster.image import PartitionState
from trilogue.broker.partitions.waiting import Bell
from trilogue.storage.config import LogConfig
from trilogue.storage.log import AppendResult, Log
from trilogue.storage.producers import Origin
from trilogue.storage.slices import Slice
from trilogue.wire.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

NO_EPOCH = -1

_order = count()
"""Of those who wait for the same offset."""


class Follower:
    """How far another replica has come, as its fetches say."""

    __slots__ = ("_fetched_at", "_leader_end", "caught_up_at", "end_offset", "start_offset")

    def __init__(self) -> None:
        self.start_offset = self.end_offset = -1
        self.caught_up_at: float | None = None
        """When it last had everything that there was; None if nobody has looked yet."""
        self._fetched_at, self._leader_end = -inf, -1

    def fetched(self, offset: int, leader_end: int, now: float) -> None:
        # Under load it never has everything; but who has by now all that there was when it asked last, keeps up.
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self._leader_end and self._fetched_at > (self.caught_up_at or -inf):
            self.caught_up_at = self._fetched_at
        self.end_offset = offset
        self._fetched_at, self._leader_end = now, leader_end


class Read(NamedTuple):
    """What a fetch finds in one partition."""

    records: Slice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging: tuple[int, int] | None = None
    """(epoch, end offset) where the reader's log parts from ours."""


class Partition:
    """Made by `replicas.py`, which tells it what it is: `lead` or `follow`."""

    __slots__ = (
        "_alone",
        "_bells",
        "_followers",
        "_replica_bells",
        "_stable",
        "_stable_bells",
        "_uncommitted",
        "_when_committed",
        "epoch_start",
        "high_watermark",
        "index",
        "key",
        "leads",
        "leads_since",
        "log",
        "min_isr",
        "node_id",
        "proposed",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(
        self, node_id: int, topic: str, index: int, topic_id: bytes, log: Log, high_watermark: int, min_isr: int
    ) -> None:
        self.node_id, self.topic, self.index, self.topic_id, self.log = node_id, topic, index, topic_id, log
        self.key = (topic, index)
        self.high_watermark = max(min(high_watermark, log.end_offset), log.start_offset)
        self.min_isr = min_isr
        self.state: PartitionState = PartitionState((), -1, NO_EPOCH, ())
        self.leads = False
        self.leads_since = NO_EPOCH
        """The first of the epochs that we lead without another leader in between: nothing of theirs is ever cut off."""
        self._alone = False
        """We lead and there is no other replica: what is written is committed."""
        self.epoch_start = 0
        """Where our leader epoch began.  Until the high watermark is there, we do not know what is committed."""
        self._followers: dict[int, Follower] = {}
        self.proposed: PartitionState | None = None
        """A state with another ISR, on its way to the store.  Whoever joins in it counts already: it may be so."""
        self._bells: dict[Bell, None] = {}
        self._replica_bells: dict[Bell, None] = {}
        """Of followers, who read what is not committed yet."""
        self._stable_bells: dict[Bell, None] = {}
        """Of those who read what is committed only."""
        self._stable = 0
        """How far they can read, as they know."""
        self._uncommitted: deque[tuple[int, int]] = deque()
        """Where batches end that not all replicas in sync have yet, and how large they are."""
        self._when_committed: list[tuple[int, int, Callable[[], None]]] = []
        """A heap of offsets, and who is to be told when all replicas in sync have everything before them."""

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, epoch {self.state.leader_epoch}, {self.log!r})"

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def too_few(self) -> bool:
        """Whether fewer replicas are in sync than are needed; a partition cannot need more than it has."""
        in_sync = len(self.state.isr)
        return in_sync < self.min_isr and in_sync < len(self.state.replicas)

    # -- roles ---------------------------------------------------------------------------------

    def become(self, state: PartitionState) -> None:
        """Take over a newer state.  An older one is history; an equal epoch may still change the ISR."""
        if (state.leader_epoch, state.version) < (self.state.leader_epoch, self.state.version):
            return
        new_epoch, new_isr = state.leader_epoch != self.state.leader_epoch, state.isr != self.state.isr
        goes_on = self.leads and state.leader_epoch == self.state.leader_epoch + 1
        if self.proposed is not None and state.version != self.proposed.version:
            self.proposed = None  # it has become so, or something else has
        self.state = state
        self.leads = state.leader == self.node_id
        self._alone = self.leads and tuple(state.replicas) == (self.node_id,)
        if new_epoch and self.leads:
            if not goes_on:
                self.leads_since = state.leader_epoch
                self._uncommitted.clear()
            self.epoch_start = self.log.end_offset
            self.log.begin_epoch(state.leader_epoch)
            self._followers = {}
        if self.leads:
            for each in (*state.replicas, *state.isr):  # the two may be read one after the other
                if each != self.node_id and each not in self._followers:
                    self._followers[each] = Follower()
            self._advance()
        if new_epoch or new_isr:
            self.ring()  # whoever waits under the old epoch, or for somebody who is gone, must hear that it is over
        if new_epoch and not (goes_on and self.leads):
            self._when_committed.clear()

    # -- waiting -------------------------------------------------------------------------------

    def watch(self, bell: Bell, *, committed_only: bool = False, replica: bool = False) -> None:
        if replica:
            self._replica_bells[bell] = None
        elif committed_only:
            if not self._stable_bells:
                self._stable = self.last_stable_offset
            self._stable_bells[bell] = None
        else:
            self._bells[bell] = None

    def unwatch(self, bell: Bell) -> None:
        self._bells.pop(bell, None)
        self._replica_bells.pop(bell, None)
        self._stable_bells.pop(bell, None)

    @property
    def watched(self) -> bool:
        return bool(self._bells or self._replica_bells or self._stable_bells)

    def ring(self) -> None:
        """Whoever waits hears of it, however little it is."""
        for bell in (*self._bells, *self._replica_bells, *self._stable_bells):
            bell.ring(self)
        for _, _, told in list(self._when_committed):
            told()

    def _advance(self, size: int = 0) -> None:
        """Move the high watermark to what all replicas in sync have; never back, and not while they are too few.

        `size` is how many bytes were appended just now and are committed with that.
        """
        reached = self.log.end_offset
        if not self._alone:
            if self.too_few:
                return
            for each in self.state.isr if self.proposed is None else {*self.state.isr, *self.proposed.isr}:
                if each != self.node_id:
                    reached = min(reached, self._followers[each].end_offset)
        if reached > self.high_watermark:
            before, self.high_watermark = self.high_watermark, reached
            while self._uncommitted and self._uncommitted[0][0] <= reached:
                size += self._uncommitted.popleft()[1]
            for bell in self._bells:
                bell.grow(self, size)
            if self._stable_bells:
                self._advance_stable(before, size)
            if self._replica_bells:
                self._tell_replicas()
            while self._when_committed and self._when_committed[0][0] <= reached:
                heappop(self._when_committed)[2]()

    def _advance_stable(self, high_watermark: int, size: int) -> None:
        """For those who read what is committed only: `high_watermark` is where it was before."""
        before, self._stable = self._stable, self.last_stable_offset
        for bell in self._stable_bells:
            if self._stable == before:
                bell.note(self)  # they will hear of the high watermark, but need not for that alone
            elif before == high_watermark:
                bell.grow(self, size)
            else:
                bell.ring(self)  # a transaction has ended: nobody has counted what it held back

    def _tell_replicas(self) -> None:
        """The next answer says where the high watermark is, or where the log begins."""
        for bell in self._replica_bells:
            bell.note(self)

    # -- writing -------------------------------------------------------------------------------

    def check_leader(self, epoch: int = NO_EPOCH) -> None:
        """Refuse unless we lead, under the epoch that the client believes in."""
        if not self.leads:
            problem = f"broker {self.node_id} does not lead {self.topic}-{self.index}"
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, problem)
        if epoch != NO_EPOCH and epoch != self.state.leader_epoch:
            older = epoch < self.state.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise BrokerError(code, f"{self.topic}-{self.index} is in epoch {self.state.leader_epoch}, not {epoch}")

    def append(
        self,
        records: memoryview,
        now_ms: int,
        acks: int = -1,
        transaction_version: int = 1,
        room: bytearray | None = None,
        *,
        origin: Origin = Origin.CLIENT,
        verified: bool = True,
        checked: LogConfig | None = None,
    ) -> AppendResult:
        """Append as leader.  With acks -1 too few replicas in sync are a reason to write nothing."""
        if not self.leads:
            self.check_leader()
        if acks == -1 and not self._alone and self.too_few:
            problem = f"{len(self.state.isr)} replicas in sync, {self.min_isr} needed for {self.topic}-{self.index}"
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, problem)
        result = self.log.append_as_leader(
            records,
            leader_epoch=self.state.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            verified=verified,
            transaction_version=transaction_version,
            room=room,
            checked=checked,
        )
        size = len(records)
        if self._alone:
            self._advance(size)
            return result
        self._uncommitted.append((result.last_offset + 1, size))
        for bell in self._replica_bells:
            bell.grow(self, size)
        self._advance()
        return result

    def is_committed(self, offset: int) -> bool:
        """Whether all replicas in sync have everything before this offset."""
        return self.high_watermark >= offset

    def tell_when_committed(self, offset: int, told: Callable[[], None]) -> None:
        """Call it when that is so, and when it may never be: `is_safe` knows which."""
        heappush(self._when_committed, (offset, next(_order), told))

    def is_safe(self, offset: int, epoch: int) -> bool:
        """Whether what was written in this epoch, up to this offset, may be acknowledged.  Raises what a producer hears
        when it never will be."""
        self.check_leader()
        if epoch < self.leads_since:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another broker has led")
        if self.high_watermark < offset:
            return False
        if self.too_few:
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    def too_slow(self) -> BrokerError:
        return BrokerError(ErrorCode.REQUEST_TIMED_OUT, f"{self.topic}-{self.index}: replicas are too slow")

    async def committed(self, offset: int, deadline: float, epoch: int | None = None) -> None:
        """Wait until it is safe, if it was written in this `epoch`, or just now."""
        if epoch is None:
            epoch = self.state.leader_epoch
        with trio.move_on_at(deadline):
            while not self.is_safe(offset, epoch):
                stirred = trio.Event()
                self.tell_when_committed(offset, stirred.set)
                await stirred.wait()
            return
        raise self.too_slow()

    # -- reading -------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed_only: bool,
        min_one: bool,
        epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        replica: bool = False,
    ) -> Read:
        """What a consumer gets from `offset` on; a replica also what is not committed yet."""
        if epoch != NO_EPOCH or not self.leads:
            self.check_leader(epoch)
        stable = self.last_stable_offset
        if last_fetched_epoch != NO_EPOCH:
            known, end = self.log.epoch_end_offset(last_fetched_epoch)
            if end == -1:
                problem = f"{self.topic}-{self.index}: epoch {last_fetched_epoch} is unknown here"
                raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, problem)
            if known < last_fetched_epoch or end < offset:
                return Read(None, self.high_watermark, stable, self.log.start_offset, (known, end))
        limit = self.log.end_offset if replica else stable if committed_only else self.high_watermark
        records = self.log.read(offset, max_bytes, up_to=limit, min_one=min_one)
        return Read(records, self.high_watermark, stable, self.log.start_offset)

    def visible_end(self, committed_only: bool) -> int:
        """The offset that a consumer believes to be the end."""
        if self.high_watermark < self.epoch_start:
            problem = f"{self.topic}-{self.index}: what is committed is not known yet"
            raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE, problem)
        return self.last_stable_offset if committed_only else self.high_watermark

    # -- replicas ------------------------------------------------------------------------------

    def fetched(self, replica: int, offset: int, start: int, now: float) -> bool:
        """A follower has everything from `start` up to `offset`.  Whether it could join the ISR now."""
        follower = self._followers[replica]
        follower.fetched(offset, self.log.end_offset, now)
        if start != follower.start_offset:
            follower.start_offset = start
            for bell in self._bells:
                bell.ring(self)  # somebody may wait for it to forget
        self._advance()
        return (
            replica not in self.state.isr
            and self.proposed is None
            and offset >= self.high_watermark
            and offset >= self.epoch_start
        )

    def had_everything(self, replica: int, then: float) -> None:
        """A follower has gone on asking for what comes behind the end, at last `then`."""
        follower = self._followers.get(replica)
        if follower is not None:
            follower.caught_up_at = then

    def laggards(self, now: float, patience: float) -> set[int]:
        """Members of the ISR that have not kept up for so long."""
        late = set()
        for each in self.state.isr:
            follower = self._followers.get(each)
            if follower is None or follower.end_offset == self.log.end_offset:
                continue
            if follower.caught_up_at is None:
                follower.caught_up_at = now  # the time of those that we have just begun to lead runs from here
            elif now - follower.caught_up_at > patience:
                late.add(each)
        return late

    def replicate(self, records: memoryview, high_watermark: int, log_start: int, now_ms: int) -> None:
        """What the leader of this epoch has sent, as it is."""
        if records:
            self.log.append_as_follower(records, now_ms=now_ms, leader_epoch=self.state.leader_epoch)
        self.high_watermark = max(self.high_watermark, min(high_watermark, self.log.end_offset))
        if log_start > self.log.start_offset:
            self.log.raise_start(min(log_start, self.log.end_offset), self.log.end_offset)
            self.high_watermark = max(self.high_watermark, self.log.start_offset)

    def part_from(self, epoch: int, end: int, now_ms: int) -> None:
        """Our log parts from the leader's: its last epoch that may be ours is `epoch`, which ends there at `end`.

        What lies behind goes.  If ours has an earlier epoch there instead, the leader is asked again about that.
        """
        known, ours = self.log.epoch_end_offset(epoch)
        cut = min(end, ours) if known == epoch else ours
        self.truncate(max(cut, 0), now_ms)

    def truncate(self, offset: int, now_ms: int) -> None:
        if offset < self.high_watermark:
            logger.warning("%s-%d: cut to %d, below its high watermark %d", *self.key, offset, self.high_watermark)
        self.log.truncate_to(offset, now_ms)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)

    def start_over(self, offset: int, now_ms: int) -> None:
        """All that we have is gone at the leader: begin where it does."""
        self.log.truncate_fully_and_start_at(offset, now_ms)
        self.high_watermark = offset

    # -- shortening ----------------------------------------------------------------------------

    def forget_before(self, offset: int) -> int:
        """DeleteRecords: nothing before `offset` is read any more; -1 is the high watermark.  Which offset that is."""
        self.check_leader()
        if not self.log.config.delete:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, f"{self.topic} is compacted: its records are not deleted")
        wanted = self.high_watermark if offset == -1 else offset
        if wanted < 0 or wanted > self.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{wanted} is not below {self.high_watermark}")
        self.log.raise_start(wanted, self.high_watermark)
        self._tell_replicas()
        return wanted

    def expire(self, now_ms: int) -> None:
        """Retention: what is too old or too much goes, if we lead."""
        before = self.log.start_offset
        self.log.expire(now_ms, self.high_watermark)
        if self.log.start_offset != before:
            self._tell_replicas()

    def low_watermark(self, alive: Container[int]) -> int:
        """Where the log begins on the replica that has forgotten least, of those whose brokers are there."""
        starts = [each.start_offset for replica, each in self._followers.items() if replica in alive]
        return min([self.log.start_offset, *starts])
