"""A follower's fetch, within a session: what it says anew, and what there is for it.

A partition of which the follower has everything, and has heard everything, is settled, and not looked at again until
something happens (`partitions/standing.py`).  So what a fetch costs does not grow with the partitions that are idle.
"""

from collections.abc import Iterable
from typing import NamedTuple

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.fetch_sessions import NO_SESSION, Entry, Session
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.standing import Key, Standing
from trilogue.broker.requests.later import Later, Parked, nobody
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.reading import Answer, by_topic, find, name_leaders, refusal, shape
from trilogue.broker.security.brokers import Identity
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answered = FetchResponse | Parked[FetchResponse]

MANY = 100
"""To look at more partitions than these takes long."""
STANDS_SECONDS = 10.0
"""A session that was not used for so long has lost its follower, when another of them begins."""


class Found(NamedTuple):
    """Something that the follower has to hear."""

    key: Key
    entry: Entry
    partition: Partition | None
    """None if it is refused."""
    answer: Answer
    size: int


def follow(
    broker: Broker,
    request: FetchRequest,
    peer: Peer,
    session: Session,
    replica: Identity,
    said: Iterable[Key],
    forgotten: Iterable[Key],
) -> Answered | Later[Answered]:
    """`said` is what the request has named, and `forgotten` what it wants no more."""
    now = trio.current_time()
    standing = session.standing
    if standing is None:
        broker.fetch_sessions.stand_down(now - STANDS_SECONDS)
        standing = session.standing = Standing(replica.node_id)
    standing.asked_at = now
    for key in said:
        standing.due[key] = None
    for key in forgotten:
        standing.forget(key)
    fetch = Following(broker, request, peer, session, standing, replica, now)
    return fetch.begin_in_pieces() if len(standing.due) > MANY else fetch.begin()


class Following(Parked[FetchResponse]):
    """Waits until there is enough, something to be heard at once, or no more time."""

    __slots__ = (
        "_answered",
        "_broker",
        "_epoch",
        "_found",
        "_max_bytes",
        "_min_bytes",
        "_peer",
        "_replica",
        "_session",
        "_size",
        "_standing",
        "_urgent",
    )

    def __init__(
        self,
        broker: Broker,
        request: FetchRequest,
        peer: Peer,
        session: Session,
        standing: Standing,
        replica: Identity,
        now: float,
    ) -> None:
        super().__init__(now + request.max_wait_ms / 1000)
        self._broker, self._peer, self._replica = broker, peer, replica
        self._session, self._standing, self._epoch = session, standing, session.epoch
        self._max_bytes = min(request.max_bytes, broker.config["fetch.max.bytes"])
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._found: list[Found] = []
        self._size = 0
        """Of all records that were found."""
        self._urgent = False
        """There is something to be heard whatever the size: an error, or that the two logs have parted."""
        self._answered = False

    # -- when ----------------------------------------------------------------------------------

    def begin(self) -> Answered:
        self._look(first=True)
        return self._answer() if self._is_enough(trio.current_time()) else self._wait()

    async def begin_in_pieces(self) -> Answered:
        await self._look_in_pieces(first=True)
        return self._answer() if self._is_enough(trio.current_time()) else self._wait()

    def _is_enough(self, now: float) -> bool:
        return self._urgent or self._standing.lacks <= 0 or now >= self.deadline or self._broker.stopping

    def _wait(self) -> Parked[FetchResponse]:
        self._found.clear()  # whoever waits holds no files open
        self._standing.heard = self._heard
        return self

    def _heard(self) -> None:
        self.wake()

    def take(self, now: float) -> FetchResponse | Later[FetchResponse] | None:
        if self._session.epoch != self._epoch:
            self._answered = True
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, responses=[])
        if len(self._standing.due) > MANY:
            self._answered = True
            return self._answer_in_pieces()
        self._look(first=False)
        if self._is_enough(now):
            return self._answer()
        self._found.clear()
        return None

    async def _answer_in_pieces(self) -> FetchResponse:
        await self._look_in_pieces(first=False)
        return self._answer()

    def close(self) -> None:
        self.wake = nobody
        self._found.clear()
        if self._session.epoch == self._epoch:
            self._standing.heard = nobody
            if not self._answered:
                self._standing.stand_down()  # the follower has hung up

    # -- what there is -------------------------------------------------------------------------

    def _begin_to_look(self) -> None:
        self._found.clear()
        self._size, self._urgent = 0, False
        self._standing.lacks = self._min_bytes

    def _look(self, *, first: bool) -> None:
        self._begin_to_look()
        for key in list(self._standing.due):
            self._look_at(key, first)

    async def _look_in_pieces(self, *, first: bool) -> None:
        self._begin_to_look()
        pace = self._broker.turns.pace()
        for key in list(self._standing.due):
            self._look_at(key, first)
            await pace.step()

    def _look_at(self, key: Key, first: bool) -> None:
        """`first`: for the first time in this request, which says how far the follower has come."""
        broker, standing, entry = self._broker, self._standing, self._session.entries.get(key)
        if entry is None:
            return standing.forget(key)  # between two pieces
        wanted, node_id = entry.wanted, self._replica.node_id
        try:
            partition = find(broker, self._peer, wanted)
            if node_id not in partition.state.replicas:
                raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not a replica of this partition")
            held_back = broker.throttles.leader and self._is_too_fast(partition)
            got = partition.read(
                wanted.offset,
                0 if held_back else min(wanted.max_bytes, max(0, self._max_bytes - self._size)),
                committed_only=False,
                min_one=not self._size and not held_back,
                epoch=wanted.leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
                replica=True,
            )
        except BrokerError as error:
            return self._refuse(key, entry, error.code)
        except OSError:
            return self._refuse(key, entry, ErrorCode.KAFKA_STORAGE_ERROR)
        standing.watch(key, partition)
        if got.diverging is not None:
            self._urgent = True
        elif first:
            if partition.fetched(node_id, wanted.offset, wanted.log_start_offset, standing.asked_at):
                broker.in_sync.admit(partition, self._replica)
            got = got._replace(high_watermark=partition.high_watermark)
        size = 0 if got.records is None else len(got.records)
        if size or got.diverging is not None or entry.told != (got.high_watermark, got.log_start_offset):
            self._size += size
            standing.lacks -= size
            self._found.append(Found(key, entry, partition, shape(key[1], got), size))
        elif self._is_settled(entry, partition):
            standing.settle(key)

    def _refuse(self, key: Key, entry: Entry, code: int) -> None:
        self._urgent = True
        self._found.append(Found(key, entry, None, refusal(key[1], code), 0))

    def _is_too_fast(self, partition: Partition) -> bool:
        """Whether the follower is not in sync, and gets nothing for a while."""
        throttle = self._broker.throttles.leader
        return (
            self._replica.node_id not in partition.state.isr
            and throttle.covers(*partition.key)
            and throttle.exceeded(trio.current_time())
        )

    def _is_settled(self, entry: Entry, partition: Partition) -> bool:
        log = partition.log
        return (
            log.end_offset == entry.wanted.offset
            and entry.told == (partition.high_watermark, log.start_offset)
            and self._replica.node_id in partition.state.isr
            and partition.leads
        )

    # -- the answer ----------------------------------------------------------------------------

    def _answer(self) -> FetchResponse:
        self._answered = True
        for each in self._found:
            self._tell(each)
        answers = ((each.key[0], each.answer) for each in self._found)
        response = FetchResponse(session_id=self._session.id, responses=by_topic(answers))
        self._found = []
        if self._session.id == NO_SESSION:
            self._standing.stand_down()
        if self._urgent:
            name_leaders(self._broker, self._peer, response, endpoints=False)
        return response

    def _tell(self, found: Found) -> None:
        key, entry, partition, answer, size = found
        if partition is None or answer.diverging_epoch.end_offset >= 0:
            # Repeated until it is over, and what comes then is news: whoever hears it takes nothing else over.
            entry.told = None
            return
        entry.told = (answer.high_watermark, answer.log_start_offset)
        if size:
            self._standing.last(key)
            throttle = self._broker.throttles.leader
            if throttle and throttle.covers(*partition.key):
                throttle.count(size, trio.current_time())
        elif self._is_settled(entry, partition):
            self._standing.settle(key)
