"""The controller: takes the office when it is empty, elects leaders while it holds it, and changes the metadata, which
it does on every broker.

A change is decided by the pure functions of `decisions.py` on the image we have, and committed together with a
check that the controller is still who it was.  If somebody was quicker, it is decided anew on a newer image.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence

import trio

from trilogue.broker.cluster import decisions
from trilogue.broker.cluster.decisions import Change, NewTopic
from trilogue.broker.cluster.image import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    PRODUCER_IDS,
    Image,
    PartitionState,
    Topic,
    config_path,
    not_understood,
    to_json,
    topic_path,
)
from trilogue.broker.cluster.store import UNREACHED, Check, Conflict, Create, Delete, Op, Refused, Update
from trilogue.broker.cluster.view import MANY_NODES, View
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

logger = logging.getLogger(__name__)

ATTEMPTS = 20
"""How often a change is decided anew.  More would mean that two parties overwrite each other for ever."""

ELECTIONS_PER_COMMIT = 1000
"""A store may bound the size of one commit; ZooKeeper's is a megabyte."""

PRODUCER_ID_BLOCK = 1000

AGAIN_SECONDS = 1.0
"""Until the store is tried again that could not be written, or reached: then no image comes that would wake us."""


def unwritable(error: OSError) -> BrokerError:
    """The store has refused, and nothing has changed: its disk may be full.  Whoever asked may ask again."""
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the cluster's metadata cannot be written: {error}")


class Controller:
    def __init__(
        self,
        view: View,
        node_id: int,
        chance: random.Random,
        unclean: Callable[[str], bool],
        min_isr: Callable[[str], int] = decisions.one,
    ) -> None:
        self._view, self._node_id, self._chance, self._unclean, self._min_isr = view, node_id, chance, unclean, min_isr
        self._producer_ids = iter(range(0))

    @property
    def holds(self) -> bool:
        return self._view.image.controller == self._node_id

    # -- holding it ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Never ends."""
        settled: Image | None = None
        while True:
            image = self._view.image
            try:
                if image.controller == -1:
                    await self._take()
                elif self.holds:
                    await self._elect(image, settled)
                    settled = image
            except Conflict as conflict:
                logger.debug("decided on what has changed meanwhile: %s", conflict)
            except OSError as error:
                logger.error("the controller cannot write what it has decided, and tries again: %s", error)
                await trio.sleep(AGAIN_SECONDS)
                continue
            except UNREACHED as trouble:
                logger.warning("the controller cannot do its work now: %s", trouble)
                await trio.sleep(AGAIN_SECONDS)
                continue
            await self._view.newer_than(image)

    async def _take(self) -> None:
        """Become the controller, and raise the epoch in the same commit: never two under one number."""
        image = self._view.image
        epoch = str(image.controller_epoch + 1).encode()
        first = image.controller_epoch_version == -1
        raised = (
            Create(CONTROLLER_EPOCH, epoch)
            if first
            else Update(CONTROLLER_EPOCH, epoch, image.controller_epoch_version)
        )
        name = to_json(version=2, brokerid=self._node_id)
        await self._view.session.commit([Create(CONTROLLER, name, ephemeral=True), raised])

    async def _elect(self, image: Image, settled: Image | None) -> None:
        changes = decisions.elections(image, settled, self._unclean, self._min_isr)
        for at in range(0, len(changes), ELECTIONS_PER_COMMIT):
            await self._commit(
                image, [each.op(image.controller_epoch) for each in changes[at : at + ELECTIONS_PER_COMMIT]]
            )

    async def _commit(self, image: Image, ops: Sequence[Op]) -> None:
        await self._view.session.commit([Check(CONTROLLER_EPOCH, image.controller_epoch_version), *ops])

    # -- changes -------------------------------------------------------------------------------

    async def _carry_out(self, decide: Callable[[Image], Sequence[Op]], partitions: int = 0) -> None:
        """Decide, commit, and come back when our own image shows it.

        With many new partitions a thread decides: an image does not change, and the commit checks that it still holds.
        """
        for _ in range(ATTEMPTS):
            image = self._view.image
            # Whoever is asked decides: a decision is tied to what it was made on, and to the controller's epoch.
            ops = await trio.to_thread.run_sync(decide, image) if partitions > MANY_NODES else decide(image)
            if not ops:
                return
            try:
                await self._commit(image, ops)
                return await self._view.shows_what_was_announced()
            except Conflict as conflict:
                logger.debug("deciding anew: %s", conflict)
            except OSError as error:
                raise unwritable(error) from None
            except UNREACHED as trouble:  # it may have been done: whoever asked finds out by asking again
                raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, str(trouble)) from None
            except Refused as refusal:
                raise BrokerError(ErrorCode.POLICY_VIOLATION, str(refusal)) from None
            await self._view.newer_than(image)
        raise BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "the cluster's metadata changes faster than it can be changed"
        )

    async def create_topic(
        self, new: NewTopic, defaults: tuple[int, int], *, topic_id: bytes | None = None, dry_run: bool = False
    ) -> Topic:
        """Returns when it can be written to."""
        chosen = topic_id or self._fresh_id()
        start = self._chance.randrange(1 << 16)
        if dry_run:
            return decisions.plan_topic(self._view.image, new, chosen, defaults, start)

        def decide(image: Image) -> Sequence[Op]:
            planned = decisions.plan_topic(image, new, chosen, defaults, start)
            return decisions.create_ops(planned, new.configs, image.controller_epoch)

        await self._carry_out(decide, max(new.num_partitions, len(new.assignments)))
        await self._view.until(lambda image: chosen in image.topic_names)
        return self._view.image.topics[new.name]

    async def delete_topic(self, name: str) -> None:
        def decide(image: Image) -> Sequence[Op]:
            if name not in image.topics:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return decisions.delete_ops(image, name)

        await self._carry_out(decide)

    async def clear(self) -> None:
        """Delete all topics, and all settings that anybody has made."""

        def decide(image: Image) -> Sequence[Op]:
            topics = [op for name in image.topics for op in decisions.delete_ops(image, name)]
            gone = {op.path for op in topics}
            configs = [config_path(kind, name) for kind, name in image.configs]
            return [*topics, *(Delete(path) for path in configs if path not in gone)]

        await self._carry_out(decide)

    async def add_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None, *, dry_run: bool = False
    ) -> None:
        start = self._chance.randrange(1 << 16)
        if dry_run:
            decisions.plan_partitions(self._view.image, name, count, assignments, start)
            return

        def decide(image: Image) -> Sequence[Op]:
            after = decisions.plan_partitions(image, name, count, assignments, start)
            return decisions.grow_ops(image.topics[name], after, image.controller_epoch)

        await self._carry_out(decide, count)

    async def change_partition(
        self, topic: str, partition: int, decide_state: Callable[[Image, PartitionState], PartitionState]
    ) -> None:
        """Give a partition another leader or ISR."""

        def decide(image: Image) -> Sequence[Op]:
            state = image.partition(topic, partition)
            if state is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            after = decide_state(decisions.seen_from(image, topic, partition), state)
            return [Change(topic, partition, after).op(image.controller_epoch)]

        await self._carry_out(decide)

    async def reassign(self, topic: str, partition: int, wanted: tuple[int, ...] | None, *, may_resize: bool) -> None:
        """Put a partition's replicas where they are wanted; None stops what is under way."""

        def decide(image: Image) -> Sequence[Op]:
            after = decisions.plan_reassignment(image, topic, partition, wanted, may_resize)
            before = image.topics[topic]
            return [] if after == before else [Update(topic_path(topic), after.to_json(), before.version)]

        await self._carry_out(decide)

    async def alter_configs(
        self, changes: Callable[[Image], Mapping[tuple[str, str], Mapping[str, str] | None]]
    ) -> None:
        """Replace the settings of resources, by kind and name; None or nothing left removes them.

        `changes` is asked again if somebody else has changed them meanwhile.
        """

        def decide(image: Image) -> Sequence[Op]:
            ops: list[Op] = []
            for key, config in changes(image).items():
                path, version = config_path(*key), image.config_versions.get(key)
                if config:
                    data = to_json(version=1, config=dict(config))
                    ops.append(Create(path, data) if version is None else Update(path, data, version))
                elif version is not None:
                    ops.append(Delete(path, version))
            return ops

        await self._carry_out(decide)

    async def producer_id(self) -> int:
        """One that nobody has had.  Brokers take them from the store a block at a time."""
        for number in self._producer_ids:
            return number
        for _ in range(ATTEMPTS):
            try:
                start = await self._take_producer_ids()
            except Conflict:
                await trio.lowlevel.checkpoint()
                continue
            except OSError as error:  # clients of every age know that they may ask again after this
                raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(unwritable(error))) from None
            except UNREACHED as trouble:
                raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(trouble)) from None
            self._producer_ids = iter(range(start, start + PRODUCER_ID_BLOCK))
            return next(self._producer_ids)
        raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no block of producer ids could be taken")

    async def _take_producer_ids(self) -> int:
        """The first of a block.  If we do not hear that it is ours, it is nobody's."""
        node = await self._view.session.read(PRODUCER_IDS)
        try:
            start = int(node.data) if node else 0
        except ValueError as problem:
            not_understood(PRODUCER_IDS, problem)
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{PRODUCER_IDS} cannot be understood") from None
        taken = str(start + PRODUCER_ID_BLOCK).encode()
        op = Update(PRODUCER_IDS, taken, node.version) if node else Create(PRODUCER_IDS, taken)
        await self._view.session.commit([op])
        return start

    def _fresh_id(self) -> bytes:
        while (drawn := self._chance.randbytes(16)) == ZERO_UUID or drawn in self._view.image.topic_names:
            pass
        return drawn
