"""Keeps the ISR of partitions that we lead true: who falls behind leaves it, who has caught up comes back.

A change is one compare-and-set of the partition's state.  Until the store has answered, whoever is to join counts as a
member, and whoever is to leave still does.
"""

import logging
from collections.abc import Callable

import trio

from trilogue.broker.cluster.decisions import with_isr
from trilogue.broker.cluster.image import PartitionState, state_path
from trilogue.broker.cluster.store import Conflict, Refused, SessionLost, Unavailable, Update
from trilogue.broker.cluster.view import View
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.replicas import Replicas
from trilogue.broker.security.brokers import Identity

logger = logging.getLogger(__name__)


class InSync:
    def __init__(self, view: View, replicas: Replicas, tasks: trio.Nursery, lag_seconds: Callable[[], float]) -> None:
        self._view, self._replicas, self._tasks, self._lag_seconds = view, replicas, tasks, lag_seconds

    async def run(self) -> None:
        """Never ends: looks who has fallen behind."""
        while True:
            patience, before = self._lag_seconds(), trio.current_time()
            await trio.sleep(patience / 2)
            now = trio.current_time()
            if now - before > patience:
                continue  # we were stopped, or time was: what followers have sent meanwhile is heard first
            for partition in list(self._replicas):
                if partition.leads and len(partition.state.isr) > 1 and partition.proposed is None:
                    late = partition.laggards(now, patience)
                    if late:
                        self._propose(partition, tuple(each for each in partition.state.isr if each not in late))

    def admit(self, partition: Partition, replica: Identity) -> None:
        """It has caught up, and joins if it is who the cluster knows under that id."""
        info = self._view.image.brokers.get(replica.node_id)
        if info is None or info.epoch != replica.epoch or info.stopping or partition.key in info.offline:
            return
        state = partition.state
        self._propose(partition, tuple(each for each in state.replicas if each in state.isr or each == replica.node_id))

    def _propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        partition.proposed = with_isr(self._view.image, partition.state, isr, partition.min_isr)
        self._tasks.start_soon(self._commit, partition, partition.proposed)

    async def _commit(self, partition: Partition, proposed: PartitionState) -> None:
        image = self._view.image
        path = state_path(partition.topic, partition.index)
        try:
            await self._view.session.commit([Update(path, proposed.to_json(image.controller_epoch), proposed.version)])
        except Conflict as conflict:
            logger.debug("%s-%d: %s", *partition.key, conflict)  # what it is instead, the store tells us
        except (OSError, Unavailable, Refused) as error:
            logger.warning("%s-%d: its ISR cannot be changed: %s", *partition.key, error)
        except SessionLost as trouble:
            # It may be so, or become so.  Whoever was to join counts until the store has told us what is.
            logger.warning("%s-%d: whether its ISR is %s is not known: %s", *partition.key, proposed.isr, trouble)
            return
        else:
            logger.info("%s-%d: ISR %s", *partition.key, proposed.isr)
            return
        if partition.proposed is proposed:
            partition.proposed = None
