"""Ways to break the product, in this process only: what the simulation has to find, or it is of no use.

Each is a law of replication that is left out (part by part of what Kafka's own history has got wrong), made by putting
another function in the place of one.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from unittest.mock import patch

import trio

from trilogue.broker import membership, server
from trilogue.broker.cluster import decisions
from trilogue.broker.cluster.controller import Controller
from trilogue.broker.cluster.image import BrokerInfo, PartitionState, state_path
from trilogue.broker.cluster.remote import RemoteSession
from trilogue.broker.cluster.store import ANY_VERSION, Conflict, Refused, SessionLost, Unavailable, Update
from trilogue.broker.machines.shard import Shard, Ticket
from trilogue.broker.membership import Member, knows_its_part
from trilogue.broker.partitions.fetch_sessions import Session
from trilogue.broker.partitions.fetcher import Fetcher
from trilogue.broker.partitions.in_sync import InSync
from trilogue.broker.partitions.partition import NO_EPOCH, Partition
from trilogue.broker.security.brokers import Identity
from trilogue.storage import recovery, replay
from trilogue.storage.log import Log
from trilogue.wire.errors import BrokerError, ErrorCode

Parts = list[tuple[Any, str, Any]]


class Mutation(NamedTuple):
    breaks: str
    """What is not so any more."""
    parts: Callable[[], Parts]
    """Where, which name, and what stands there instead."""


MUTATIONS: dict[str, Mutation] = {}


def mutation(name: str, breaks: str) -> Callable[[Callable[[], Parts]], None]:
    def note(parts: Callable[[], Parts]) -> None:
        MUTATIONS[name] = Mutation(breaks, parts)

    return note


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    with ExitStack() as stack:
        for where, what, instead in MUTATIONS[name].parts() if name is not None else ():
            stack.enter_context(patch.object(where, what, instead))
        yield


# -- replication -----------------------------------------------------------------------------------


@mutation(
    "min ISR checked once",
    "the ISR has to be large enough when something is appended, and not when it counts as committed",
)
def _() -> Parts:
    advance, is_safe, too_few = Partition._advance, Partition.is_safe, Partition.too_few
    overlooked = [False]

    def enough(self: Partition) -> bool:
        return not overlooked[0] and too_few.__get__(self)

    def advancing(self: Partition, size: int = 0) -> None:
        overlooked[0] = True
        advance(self, size)
        overlooked[0] = False

    def safe(self: Partition, offset: int, epoch: int) -> bool:
        overlooked[0] = True
        try:
            return is_safe(self, offset, epoch)
        finally:
            overlooked[0] = False

    return [(Partition, "too_few", property(enough)), (Partition, "_advance", advancing), (Partition, "is_safe", safe)]


@mutation(
    "cut to the high watermark", "a follower whose log parts from the leader's is cut there, and not where they part"
)
def _() -> Parts:
    def part_from(self: Partition, epoch: int, end: int, now_ms: int) -> None:
        self.truncate(self.high_watermark, now_ms)

    return [(Partition, "part_from", part_from)]


@mutation("never cut", "a follower whose log parts from the leader's keeps it, and goes on behind it")
def _() -> Parts:
    read = Partition.read

    def reading(self: Partition, offset: int, max_bytes: int, **more: Any) -> Any:
        return read(self, offset, max_bytes, **{**more, "last_fetched_epoch": NO_EPOCH})

    return [(Partition, "read", reading)]


@mutation("any epoch fetches", "a fetch under an epoch that is over counts: it says how far a follower has come")
def _() -> Parts:
    def check_leader(self: Partition, epoch: int = NO_EPOCH) -> None:
        if not self.leads:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not led here")

    return [(Partition, "check_leader", check_leader)]


@mutation("acknowledge at once", "acks=all is answered before followers have it")
def _() -> Parts:
    def is_safe(self: Partition, offset: int, epoch: int) -> bool:
        self.check_leader()
        return True

    return [(Partition, "is_safe", is_safe)]


@mutation("acknowledge under another epoch", "who waited when another broker came to lead is told that all is well")
def _() -> Parts:
    def is_safe(self: Partition, offset: int, epoch: int) -> bool:
        self.check_leader()
        if self.high_watermark < offset:
            return False
        if self.too_few:
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    def become(self: Partition, state: PartitionState) -> None:
        waiting = list(self._when_committed)
        real(self, state)
        self._when_committed[:] = waiting

    real = Partition.become
    return [(Partition, "is_safe", is_safe), (Partition, "become", become)]


@mutation("no min ISR", "the high watermark moves, and writes are taken, however few are in sync")
def _() -> Parts:
    return [(Partition, "too_few", property(lambda self: False))]


@mutation("joining does not count", "who is about to join the ISR is not waited for: the store may have it in already")
def _() -> Parts:
    advance = Partition._advance

    def advancing(self: Partition, size: int = 0) -> None:
        proposed, self.proposed = self.proposed, None
        try:
            advance(self, size)
        finally:
            self.proposed = proposed

    return [(Partition, "_advance", advancing)]


@mutation("leaving counts at once", "who is about to leave the ISR is not waited for, before the store has agreed")
def _() -> Parts:
    advance = Partition._advance

    def advancing(self: Partition, size: int = 0) -> None:
        proposed, state = self.proposed, self.state
        if proposed is not None and len(proposed.isr) < len(state.isr):
            self.state, self.proposed = state._replace(isr=proposed.isr), None
        try:
            advance(self, size)
        finally:
            self.state, self.proposed = state, proposed

    return [(Partition, "_advance", advancing)]


@mutation("leave without asking", "a follower that falls behind is left out of the high watermark, and nobody is told")
def _() -> Parts:
    def propose(self: InSync, partition: Partition, isr: tuple[int, ...]) -> None:
        if len(isr) < len(partition.state.isr):
            partition.state = partition.state._replace(isr=isr)
            partition._advance()
        else:
            real(self, partition, isr)

    real = InSync._propose
    return [(InSync, "_propose", propose)]


@mutation("join before it is there", "a follower is let into the ISR before it has what is committed")
def _() -> Parts:
    real = Partition.fetched

    def fetched(self: Partition, replica: int, offset: int, start: int, now: float) -> bool:
        real(self, replica, offset, start, now)
        return replica not in self.state.isr and self.proposed is None

    return [(Partition, "fetched", fetched)]


@mutation("join in any life", "a broker that has registered anew is let into the ISR by what it had before")
def _() -> Parts:
    def admit(self: InSync, partition: Partition, replica: Identity) -> None:
        state = partition.state
        members = (each for each in state.replicas if each in state.isr or each == replica.node_id)
        self._propose(partition, tuple(members))

    return [(InSync, "admit", admit)]


@mutation("an epoch begins unnoted", "a new leader does not write down where its epoch begins")
def _() -> Parts:
    return [(Log, "begin_epoch", lambda self, epoch: None)]


@mutation("old epochs win", "a state that is older than the one there is is taken over")
def _() -> Parts:
    def become(self: Partition, state: PartitionState) -> None:
        self.state = self.state._replace(leader_epoch=min(self.state.leader_epoch, state.leader_epoch), version=-1)
        real(self, state)

    real = Partition.become
    return [(Partition, "become", become)]


@mutation("followers take anything", "what was said under an epoch that is over is appended all the same")
def _() -> Parts:
    async def take(self: Fetcher, link: Any, asked: Any, response: Any) -> None:
        for topic in response.responses:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                following = asked.get(key)
                if following is None or following.told is None or following.partition.leads:
                    continue
                try:
                    self._take_one(following, answer)
                    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        await self._find_place(link, following)
                except (BrokerError, OSError):
                    self._rest(following)
                self._news.add(key)

    return [(Fetcher, "_take", take)]


# -- the cluster -----------------------------------------------------------------------------------


@mutation("elect anybody", "who is not in sync leads if nobody else is there, whatever the settings say")
def _() -> Parts:
    real = decisions.elect

    def elect(image: Any, state: Any, unclean: bool = False, min_isr: int = 1) -> Any:
        return real(image, state, True, min_isr)

    return [(decisions, "elect", elect)]


@mutation("whoever is first leads", "of all replicas that are there the first is elected, in the ISR or not")
def _() -> Parts:
    real = decisions.elect

    def elect(image: Any, state: Any, unclean: bool = False, min_isr: int = 1) -> Any:
        after = real(image, state, unclean, min_isr)
        there = [each for each in state.replicas if each in image.brokers]
        if after is None or after.leader == -1 or not there:
            return after
        leader = next(each for each in there if each != after.leader or len(there) == 1)
        return after._replace(leader=leader, isr=tuple({*after.isr, leader}), isr_epochs=())

    return [(decisions, "elect", elect)]


@mutation("killed is as good as ended", "who was killed is elected as if it had ended in order, before who is eligible")
def _() -> Parts:
    return [(BrokerInfo, "clean_epoch", property(lambda self: self.epoch))]


@mutation("a stale controller decides", "what a controller has decided is committed though another holds the office")
def _() -> Parts:
    async def commit(self: Controller, image: Any, ops: Any) -> None:
        blind = [op._replace(version=ANY_VERSION) if isinstance(op, Update) else op for op in ops]
        await self._view.session.commit(blind)

    return [(Controller, "_commit", commit)]


@mutation("the ISR is overwritten", "a leader writes the ISR it has in mind, whatever is there by now")
def _() -> Parts:
    async def commit(self: InSync, partition: Partition, proposed: PartitionState) -> None:
        image = self._view.image
        path = state_path(partition.topic, partition.index)
        op = Update(path, proposed.to_json(image.controller_epoch), ANY_VERSION)
        with suppress(Conflict, OSError, SessionLost, Unavailable, Refused):
            await self._view.session.commit([op])
        if partition.proposed is proposed:
            partition.proposed = None

    return [(InSync, "_commit", commit)]


@mutation("not registered again", "a broker whose session is over does not register in the next")
def _() -> Parts:
    async def stay(self: Member) -> str:
        await trio.sleep_forever()
        return ""

    return [(Member, "stay", stay)]


@mutation("a part is waited for for ever", "who registers waits for its part even if its session has ended meanwhile")
def _() -> Parts:
    async def knows(self: Member, session_epoch: int, broker_epoch: int) -> bool:
        view, node_id = self._broker.view, self._broker.node_id
        await view.until(lambda image: image.controller != -1 and knows_its_part(node_id, broker_epoch, image))
        return True

    return [(Member, "_knows_its_part", knows)]


@mutation("a part of a run before", "who registers takes the part that a run before it had for its own, and leads on")
def _() -> Parts:
    def knows(node_id: int, epoch: int, image: Any) -> bool:
        me = image.brokers.get(node_id)
        return me is not None and all(
            state.leader != node_id or state.leader_broker_epoch == me.epoch
            for topic in image.topics.values()
            for state in topic.partitions
        )

    return [(membership, "knows_its_part", knows)]


@mutation("the end of a run before", "who ends before it is registered says that the run before it ended in order")
def _() -> Parts:
    def close_logs(server: Any) -> None:
        me = server.broker.image.brokers.get(server.broker.node_id)
        server.broker.replicas.close(me.epoch if me else -1)

    return [(server, "close_logs", close_logs)]


@mutation("nothing is missed", "after a connection was broken nobody looks what has changed meanwhile")
def _() -> Parts:
    async def look(self: RemoteSession, link: Any) -> None:
        self._account = await self._balance(link)

    return [(RemoteSession, "_look_at_everything", look)]


@mutation("a broken connection is a yes", "a commit whose answer was lost counts as done")
def _() -> Parts:
    async def was_done(self: RemoteSession, link: Any, journal: Any) -> bool:
        return True

    return [(RemoteSession, "_was_done", was_done)]


@mutation("leaders keep their epoch", "a broker that was started again leads on under the epoch that it led in before")
def _() -> Parts:
    real = decisions.elect

    def elect(image: Any, state: Any, unclean: bool = False, min_isr: int = 1) -> Any:
        after = real(image, state, unclean, min_isr)
        if after is not None and after.leader == state.leader:
            return after._replace(leader_epoch=state.leader_epoch)
        return after

    return [(decisions, "elect", elect)]


# -- producers, transactions, groups ----------------------------------------------------------------


@mutation("cutting forgets producers", "after a log was cut nothing is known of who has written to it")
def _() -> Parts:
    def read_producers(self: Log, now_ms: int) -> None:
        self._producers.clear(self.end_offset)

    return [(Log, "_read_producers", read_producers)]


@mutation("followers do not know producers", "what is replicated does not tell who has written it, in which order")
def _() -> Parts:
    real = Log.append_as_follower

    def append(self: Log, records: Any, **more: Any) -> Any:
        result = real(self, records, **more)
        self._producers.clear(self.end_offset)
        return result

    return [(Log, "append_as_follower", append)]


@mutation("one batch is remembered", "after a restart only the last batch of a producer is known to be there")
def _() -> Parts:
    return [(replay, "_recall", lambda *_: None)]


@mutation("holes are overlooked", "a log that has lost the end of a segment goes on with the next")
def _() -> Parts:
    real = recovery.load

    def load(path: str, config: Any, *given: Any) -> Any:
        return real(path, dataclasses.replace(config, compact=True), *given)

    return [(recovery, "load", load)]


@mutation("markers end nothing", "who reads what is committed is shown what was aborted, and what is not decided")
def _() -> Parts:
    return [
        (Log, "last_stable_offset", lambda self, high_watermark: high_watermark),
        (Log, "aborted_between", lambda self, first, last: []),
    ]


@mutation("coordinators answer early", "what a coordinator has decided is told before it is with all replicas")
def _() -> Parts:
    def settle(self: Ticket, response: object, after: int) -> None:
        real(self, response, 0)

    real = Ticket.settle
    return [(Ticket, "settle", settle)]


@mutation("coordinators do not load", "who comes to lead a coordinator's partition begins with nothing")
def _() -> Parts:
    async def load(self: Shard[Any]) -> None:
        await trio.lowlevel.checkpoint()
        self.begin()

    return [(Shard, "load", load)]


@mutation("a parting is told once", "in a fetch session it is no news where logs part")
def _() -> Parts:
    real = Session.is_news

    def is_news(self: Session, key: Any, high: int, start: int, data: bool, error: int, diverges: bool = False) -> bool:
        return real(self, key, high, start, data, error)

    return [(Session, "is_news", is_news)]
