"""A follower's task: fetches, from one leader's broker, every partition that we follow there.

A fetch says for each partition where our log ends and under which epoch that was written.  If the leader's log parts
from ours, it says where, and we cut ours before anything is appended; so that happens under every new leader epoch by
itself, and again until the two agree.  What comes for an epoch that is over is dropped.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from math import inf

import trio

from trilogue.broker.config import BrokerConfig
from trilogue.broker.names import TopicIdPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.throttle import Throttle
from trilogue.broker.requests.turns import Turns
from trilogue.client.errors import ClientError, TimedOut
from trilogue.client.link import Link
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

Asked = FetchRequest.Topic.Partition
Answer = FetchResponse.Topic.Partition
VERSION = 17
LATEST, EARLIEST = -1, -2
NO_SESSION, INITIAL_EPOCH = 0, 0
NO_EPOCH = -1
EPOCH_MAX = 2**31 - 1
HELD_SECONDS = 0.05
"""For so long at least who has copied too fast is held back: `replica.fetch.backoff.ms` may be nothing."""

MOVED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INCONSISTENT_TOPIC_ID,
}
"""One of us two has not heard of a change yet."""


class Following:
    """A partition that we fetch, and what the leader was told of it last."""

    __slots__ = ("has_all", "partition", "told")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.has_all = False
        """Whether we had everything that was committed when the leader answered last, as he said."""
        self.told: tuple[int, int, int, int] | None = None
        """None if nothing, or if it is left out for a while."""

    @property
    def key(self) -> TopicIdPartition:
        return (self.partition.topic_id, self.partition.index)

    def now(self) -> tuple[int, int, int, int]:
        log = self.partition.log
        latest = NO_EPOCH if log.latest_epoch is None else log.latest_epoch
        return (self.partition.leader_epoch, log.end_offset, latest, log.start_offset)


class Fetcher:
    """`dial` connects to the leader's broker, `me` says who we are."""

    def __init__(
        self,
        leader: int,
        dial: Callable[[int], Awaitable[Link]],
        me: Callable[[], FetchRequest.ReplicaState],
        config: Callable[[], BrokerConfig],
        clock_ms: Callable[[], int],
        turns: Turns,
        throttle: Throttle,
        disk_failed: Callable[[Partition, OSError], None],
    ) -> None:
        self._disk_failed = disk_failed
        self.leader, self._dial, self._me, self._config = leader, dial, me, config
        self._clock_ms, self._turns, self._throttle = clock_ms, turns, throttle
        self._following: dict[TopicIdPartition, Following] = {}
        self._news: set[TopicIdPartition] = set()
        """What the leader has to be told of."""
        self._gone: set[TopicIdPartition] = set()
        """What it is to leave out from now on."""
        self._resting: dict[TopicIdPartition, float] = {}
        """What is left out for a while, and until when."""
        self._session = (NO_SESSION, INITIAL_EPOCH)
        self._stirred = trio.Event()
        self._failed = False

    # -- what we follow ------------------------------------------------------------------------

    def follow(self, partitions: Iterable[Partition]) -> None:
        """These, and no others any more."""
        wanted = {(each.topic_id, each.index): each for each in partitions}
        for key in [each for each in self._following if each not in wanted]:
            del self._following[key]
            self._resting.pop(key, None)
            self._news.discard(key)
            self._gone.add(key)
        for key, partition in wanted.items():
            known = self._following.get(key)
            if known is None or known.partition is not partition:
                self._following[key] = Following(partition)
            elif known.told is not None and known.told[0] == partition.leader_epoch:
                continue
            else:
                known.has_all = False
            self._resting.pop(key, None)
            self._news.add(key)
        self._stirred.set()

    def __len__(self) -> int:
        return len(self._following)

    # -- the task ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Never ends."""
        while True:
            while not self._following:
                self._stirred = trio.Event()
                await self._stirred.wait()
            try:
                link = await self._dial(self.leader)
                try:
                    await self._fetch_from(link)
                finally:
                    link.close()
            except (ClientError, BrokerError) as problem:
                if not self._failed:
                    self._failed = True
                    logger.warning("broker %d cannot be followed: %s", self.leader, problem)
            await trio.sleep(self._config()["replica.fetch.backoff.ms"] / 1000)

    async def _fetch_from(self, link: Link) -> None:
        with trio.CancelScope() as patience:
            await self._fetch_while_answered(link, patience)
        if patience.cancelled_caught:
            raise TimedOut(f"{link.address} has not answered in time")

    async def _fetch_while_answered(self, link: Link, patience: trio.CancelScope) -> None:
        """`patience` ends when an answer is overdue.  One for all answers: a limit for each would cost as much as to
        append a record."""
        self._begin_session()
        while self._following:
            if self._resting:
                patience.deadline = inf
                await self._wake_those_who_rest()
            if self._throttle:
                self._hold_back()
                if len(self._resting) == len(self._following):
                    continue
            self._extend(patience)
            response = await link.call(self._request(), FetchResponse, cap=VERSION, seconds=inf)
            if response.error_code != ErrorCode.NONE:
                self._begin_session()
                if response.error_code not in (
                    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                ):
                    raise BrokerError(ErrorCode(response.error_code))  # type: ignore[call-arg]
                continue
            self._failed = False
            self._go_on_with_session(response.session_id)
            await self._take(link, response)

    def _extend(self, patience: trio.CancelScope) -> None:
        """So that the next answer has its time, and at most a tenth more."""
        seconds = self._config()["replica.socket.timeout.ms"] / 1000
        now = trio.current_time()
        if not now + seconds <= patience.deadline <= now + seconds * 1.1:
            patience.deadline = now + seconds * 1.1

    def _begin_session(self) -> None:
        self._session = (NO_SESSION, INITIAL_EPOCH)
        self._news = self._following.keys() - self._resting.keys()
        self._gone.clear()

    def _go_on_with_session(self, session_id: int) -> None:
        if session_id == NO_SESSION:
            self._begin_session()  # the leader keeps none for us: everything is said each time
        else:
            before = self._session[1]
            self._session = (session_id, 1 if before == EPOCH_MAX else before + 1)

    async def _wake_those_who_rest(self) -> None:
        """If all of them do, the first is waited for: a leader that is asked for nothing answers at once."""
        if len(self._resting) == len(self._following):
            self._stirred = trio.Event()
            with trio.move_on_at(min(self._resting.values())):
                await self._stirred.wait()
        now = trio.current_time()
        for key in [key for key, until in self._resting.items() if until <= now]:
            del self._resting[key]
            self._news.add(key)

    def _hold_back(self) -> None:
        """Leave those out for a while who have copied too fast."""
        now = trio.current_time()
        if self._throttle.exceeded(now):
            for key, following in self._following.items():
                if (
                    key not in self._resting
                    and not following.has_all
                    and self._throttle.covers(*following.partition.key)
                ):
                    self._rest(following)
                    self._resting[key] = max(self._resting[key], now + HELD_SECONDS)

    def _request(self) -> FetchRequest:
        """The next one."""
        config = self._config()
        topics: dict[bytes, FetchRequest.Topic] = {}
        for key in self._news:
            following = self._following[key]
            following.told = epoch, end, latest, start = following.now()
            topic = topics.setdefault(key[0], FetchRequest.Topic(topic_id=key[0], partitions=[]))
            topic.partitions.append(
                Asked(
                    partition=key[1],
                    current_leader_epoch=epoch,
                    fetch_offset=end,
                    last_fetched_epoch=latest,
                    log_start_offset=start,
                    partition_max_bytes=config["replica.fetch.max.bytes"],
                )
            )
        gone: dict[bytes, list[int]] = {}
        for topic_id, index in self._gone:
            known = self._following.get((topic_id, index))
            if known is None or known.told is None:  # else it has come back meanwhile
                gone.setdefault(topic_id, []).append(index)
        self._news, self._gone = set(), set()
        session_id, session_epoch = self._session
        Forgotten = FetchRequest.ForgottenTopic
        return FetchRequest(
            replica_state=self._me(),
            max_wait_ms=config["replica.fetch.wait.max.ms"],
            min_bytes=config["replica.fetch.min.bytes"],
            max_bytes=config["replica.fetch.response.max.bytes"],
            session_id=session_id,
            session_epoch=session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[Forgotten(topic_id=each, partitions=indexes) for each, indexes in gone.items()],
        )

    # -- what comes ----------------------------------------------------------------------------

    async def _take(self, link: Link, response: FetchResponse) -> None:
        pace = self._turns.pace()
        for topic in response.responses:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                following = self._following.get(key)
                if following is None or following.told is None:
                    continue  # it is not followed any more, or again, and then the leader was not told of it yet
                partition = following.partition
                if partition.leads or partition.leader_epoch != following.told[0]:
                    self._news.add(key)  # it was said under an epoch that is over
                    continue
                try:
                    self._take_one(following, answer)
                    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        await self._find_place(link, following)
                except OSError as error:
                    self._disk_failed(partition, error)
                    self._rest(following)
                except BrokerError as problem:
                    logger.warning("%s-%d cannot be followed: %s", *partition.key, problem)
                    self._rest(following)
                if following.told is not None and following.now() != following.told:
                    self._news.add(key)
                await pace.step()

    def _take_one(self, following: Following, answer: Answer) -> None:
        partition, now_ms = following.partition, self._clock_ms()
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return  # where to go on has to be asked for
        if answer.error_code in MOVED:
            self._rest(following)
        elif answer.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(answer.error_code))  # type: ignore[call-arg]
        elif answer.diverging_epoch.end_offset >= 0:
            partition.part_from(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset, now_ms)
        elif following.told is not None and partition.log.end_offset == following.told[1]:
            records = memoryview(answer.records or b"")
            partition.replicate(records, answer.high_watermark, answer.log_start_offset, now_ms)
            following.has_all = partition.log.end_offset >= answer.high_watermark
            if self._throttle and self._throttle.covers(*partition.key):
                self._throttle.count(len(records), trio.current_time())

    def _rest(self, following: Following) -> None:
        """Leave it out for a while."""
        key = following.key
        following.told = None
        self._resting[key] = trio.current_time() + self._config()["replica.fetch.backoff.ms"] / 1000
        self._gone.add(key)
        self._news.discard(key)

    async def _find_place(self, link: Link, following: Following) -> None:
        """What we ask for, the leader does not have: its log ends before ours, or begins behind it."""
        partition, asked_in = following.partition, following.told
        end = await self._list_offset(link, partition, LATEST)
        start = await self._list_offset(link, partition, EARLIEST)
        if asked_in is None or partition.leads or partition.leader_epoch != asked_in[0]:
            return
        if end < partition.log.end_offset:
            partition.truncate(end, self._clock_ms())
        elif start > partition.log.end_offset:
            logger.warning("%s-%d: begins anew at %d, where its leader does", *partition.key, start)
            partition.start_over(start, self._clock_ms())

    async def _list_offset(self, link: Link, partition: Partition, timestamp: int) -> int:
        Topic = ListOffsetsRequest.Topic
        wanted = Topic.Partition(
            partition_index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._me().replica_id,
            isolation_level=0,
            topics=[Topic(name=partition.topic, partitions=[wanted])],
        )
        response = await link.call(request, ListOffsetsResponse, cap=7)
        found = response.topics[0].partitions[0]
        if found.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(found.error_code))  # type: ignore[call-arg]
        return int(found.offset)
