"""A broker's place in its cluster: it registers, registers again when the store has given it up, and hands over when it
ends."""

import logging
from collections.abc import Sequence
from contextlib import suppress

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import in_sync, seen_from
from trilogue.broker.cluster.image import (
    CLUSTER_ID,
    CLUSTER_SECRET,
    Endpoint,
    Image,
    broker_json,
    broker_path,
    registered_directories,
    registration_path,
    to_json,
)
from trilogue.broker.cluster.store import UNREACHED, Conflict, Create, Refused, Session, Update
from trilogue.broker.names import TopicPartition
from trilogue.broker.network.listeners import CannotStart
from trilogue.wire.ids import uuid_text

logger = logging.getLogger(__name__)

REGISTRATIONS_MAX = 20
PATIENCE = 1.5
"""How much longer than its session's time-out a run that was killed may stay registered: servers look now and then."""

AGAIN_SECONDS = 0.5
LOOK_SECONDS = 0.5
"""How often it is looked whether others have to know of something."""

HAND_OVER_SECONDS = 30.0
"""How long other brokers may take to lead what we have led, when we stop."""

NO_EPOCH = -1


async def introduce_cluster(session: Session, cluster_id: str, secret: bytes) -> None:
    for path, data in ((CLUSTER_ID, to_json(version=1, id=cluster_id)), (CLUSTER_SECRET, secret)):
        if await session.read(path) is None:
            with suppress(Conflict):  # another broker was quicker
                await session.commit([Create(path, data)])


class Member:
    """`endpoints` are where others reach us."""

    def __init__(self, broker: Broker, endpoints: Sequence[Endpoint]) -> None:
        self._broker, self._endpoints = broker, endpoints
        self._session = broker.view.session
        self._session_epoch = 0
        """Of the session in which the cluster has been told of us."""
        directories = broker.replicas.directories
        self._directories = [uuid_text(each.id) for each in directories]
        clean = {each.clean_broker_epoch for each in directories}
        self.had_all = clean.pop() if len(clean) == 1 else None
        """The broker epoch up to whose end we are known to have lost nothing: of this run, once it is registered."""
        self._stopping = False
        self._offline: frozenset[TopicPartition] = frozenset()
        """What the cluster has been told that we cannot write to."""

    @property
    def _path(self) -> str:
        return broker_path(self._broker.node_id)

    def _told(self, offline: frozenset[TopicPartition]) -> bytes:
        return broker_json(
            self._endpoints,
            self._broker.config["broker.rack"],
            self._directories,
            clean_epoch=NO_EPOCH if self.had_all is None else self.had_all,
            stopping=self._stopping,
            offline=offline,
        )

    def _told_for_good(self) -> bytes:
        return broker_json(self._endpoints, self._broker.config["broker.rack"], self._directories)

    async def register(self) -> None:
        """From here on the cluster counts on us: leaders may be elected.  Returns when we know what we lead."""
        broker, session = self._broker, self._session
        for _ in range(REGISTRATIONS_MAX):
            epoch, offline = session.epoch, self._offline
            try:
                await session.commit([Create(self._path, self._told(offline), ephemeral=True)])
                self._offline = offline  # whatever was tried meanwhile
            except Conflict:
                if not await session.owns(self._path):
                    await self._until_former_run_is_gone()
                    continue
            if session.epoch != epoch:
                continue  # it may have ended with the session before
            self._session_epoch = epoch
            node = await session.read(self._path)
            if node is None:
                continue
            broker.registered(node.created)
            await self._be_known()
            if await self._knows_its_part(epoch, node.created):
                self.had_all = node.created
                return
        raise CannotStart(f"broker {broker.node_id} comes and goes in the store faster than we can register")

    async def _knows_its_part(self, session_epoch: int, broker_epoch: int) -> bool:
        """As soon as it does.  False if it has to be registered once more: nobody gives a part to who is gone."""
        node_id, view = self._broker.node_id, self._broker.view
        async with trio.open_nursery() as waiting:

            async def until_renewed() -> None:
                await self._session.renewed(session_epoch)
                waiting.cancel_scope.cancel()

            waiting.start_soon(until_renewed)
            await view.until(lambda image: image.controller != -1 and knows_its_part(node_id, broker_epoch, image))
            waiting.cancel_scope.cancel()
        return self._session.epoch == session_epoch

    async def _be_known(self) -> None:
        """So that partitions may be given to us while we are not there."""
        path, told = registration_path(self._broker.node_id), self._told_for_good()
        node = await self._session.read(path)
        if node is None or node.data != told:
            op = Create(path, told) if node is None else Update(path, told, node.version)
            with suppress(Conflict):  # somebody has just unregistered us; we are known again after the next start
                await self._session.commit([op])

    async def _until_former_run_is_gone(self) -> None:
        """Somebody is registered as us.  A run of ours that was killed stays so until its session ends; we have its
        directories, and with them the proof that it is dead."""
        broker, session = self._broker, self._session
        node = await session.read(self._path)
        if node is None:
            return
        if registered_directories(node.data) == self._directories and session.timeout_seconds:
            patience = PATIENCE * session.timeout_seconds
            logger.warning("an earlier run of broker %d is still registered; %g s at most", broker.node_id, patience)
            with trio.move_on_after(patience):
                return await broker.view.until(lambda image: broker.node_id not in image.brokers)
        found = broker.image.brokers.get(broker.node_id)
        where = ", ".join(f"{each.host}:{each.port}" for each in found.endpoints) if found else "an unknown address"
        raise CannotStart(f"another broker has node id {broker.node_id}, at {where}: choose another with --node-id")

    async def stay(self) -> str:
        """When the store has given us up and taken us in again, the cluster has to be told of us again.  Returns only
        if that cannot be: why."""
        while True:
            await self._session.renewed(self._session_epoch)
            logger.warning("the session with the store is another one; registering again")
            try:
                await self.register()
            except UNREACHED as trouble:
                logger.warning("not registered: %s", trouble)
                await trio.sleep(AGAIN_SECONDS)
            except CannotStart as problem:
                return str(problem)

    async def say_what_is_offline(self) -> None:
        """Never ends: when a disk is full or has failed, or is well again, the others hear of it.  Another replica in
        sync leads what was there, and nobody waits for ours."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            found, before = self._broker.replicas.offline, self._offline
            if found == before or self._broker.image.brokers.keys() <= {self._broker.node_id}:
                continue  # or there is nobody to be told
            try:
                await self._session.commit([Update(self._path, self._told(found))])
            except (Conflict, OSError, Refused, *UNREACHED) as trouble:
                logger.warning("nobody could be told of the %d partitions that are offline: %s", len(found), trouble)
            else:
                self._offline = found
                logger.warning("%d partitions are offline here, %d were", len(found), len(before))

    async def hand_over(self) -> None:
        """Before we end, others lead what they can: returns when they do, or it takes too long."""
        broker = self._broker
        if broker.image.brokers.keys() <= {broker.node_id}:
            return
        self._stopping = True
        try:
            await self._session.commit([Update(self._path, self._told(self._offline))])
        except (Conflict, OSError, *UNREACHED) as trouble:
            logger.warning("nobody could be told that this broker ends: %s", trouble)
            return
        with trio.move_on_after(HAND_OVER_SECONDS):
            await broker.view.until(lambda image: not leads_what_others_could(broker.node_id, image))


def knows_its_part(node_id: int, epoch: int, image: Image) -> bool:
    """Whether everything that a broker leads has been given to it since it registered, under this broker epoch.  The
    image may still have it as it was before: as a run that is dead, and leads what we must not lead on."""
    me = image.brokers.get(node_id)
    return (me is not None and me.epoch == epoch) and all(
        state.leader != node_id or state.leader_broker_epoch == epoch
        for topic in image.topics.values()
        for state in topic.partitions
    )


def leads_what_others_could(node_id: int, image: Image) -> bool:
    me = image.brokers.get(node_id)
    return me is not None and any(
        state.leader == node_id
        and any(each != node_id and in_sync(seen_from(image, topic.name, index), state, each) for each in state.isr)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
    )
