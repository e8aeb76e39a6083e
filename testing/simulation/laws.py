"""What must be so at every moment, whoever has failed: looked at whenever everybody has done what there was to do.

Looking costs little where nothing has changed: of every replica it is known how it was when it was looked at last.
The names are those of the invariants that Kafka's replication is specified by (hachikuji/kafka-specification).

- StrongIsr: below the high watermark of whoever believes to lead, all members of the stored ISR have the same.
- LeaderInIsr: the ISR is never empty, its members are replicas, and the leader is one of them.  Who is elected was in
  the ISR or eligible (KIP-966).
- Epochs of leaders and of the controller never decrease, and in one epoch of a partition one broker appends.
- ValidHighWatermark: no member of the largest ISR has less.
- Log matching: one offset in one epoch is one batch, wherever it is.
- Committed: whoever comes to lead has everything that any leader before has shown as committed.
- Acknowledged (acks=all) is committed.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from trilogue.broker.cluster.zookeeper import Found
from trilogue.broker.partitions.partition import Partition
from trilogue.testing.simulation.mirror import Mirror, common_end, told
from trilogue.wire.ids import uuid_bytes

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

Key = tuple[str, int]
TOPICS, STATE = "/brokers/topics/", "/state"


class Stored(NamedTuple):
    """A partition's state, as ZooKeeper has it."""

    leader: int
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    isr_epochs: tuple[int, ...]


class Laws:
    def __init__(self, cluster: "Cluster", *, unclean: bool) -> None:
        self._cluster, self._unclean = cluster, unclean
        self.looks = self.checked = 0
        self._seen: dict[tuple[int, Key], object] = {}
        self.mirrors: dict[tuple[int, Key], Mirror] = {}
        self.stored: dict[Key, Stored] = {}
        self._replicas: dict[Key, tuple[int, ...]] = {}
        self._ids: dict[str, bytes] = {}
        self._controller_epoch = -1
        self._appended_by: dict[tuple[Key, int], int] = {}
        """Who appended in an epoch of a partition."""
        self._batches: dict[tuple[Key, int, int], tuple[int, int]] = {}
        """By offset and epoch: where it ends, and its checksum."""
        self.committed: dict[Key, tuple[int, int]] = {}
        """How far any leader's high watermark has been, and what lies before that."""
        self._shown: dict[tuple[int, Key], tuple[int, int, int]] = {}
        """Of who leads: in which life, since which epoch, and its high watermark."""
        self.forgetful: set[tuple[int, Key]] = set()
        """Replicas that have lost what was not synced, and are not known to have everything again."""
        cluster.watchers.append(self.heard)
        cluster.ack_listeners.append(self.acknowledged)
        cluster.agenda.before_time_moves = self._look_safely

    # -- what ZooKeeper has --------------------------------------------------------------------

    def heard(self, after: dict[str, Found | None]) -> None:
        for path, node in after.items():
            if node is None and path.startswith(TOPICS) and "/" not in path.removeprefix(TOPICS):
                self._forget(path.removeprefix(TOPICS))
            if node is None or node.data is None:
                continue
            if path == "/controller_epoch":
                epoch = int(node.data)
                if epoch <= self._controller_epoch:
                    self._blame("epochs", f"the controller's epoch was {self._controller_epoch}, and is {epoch}")
                self._controller_epoch = epoch
            elif path.startswith("/brokers/topics/"):
                parts = path.split("/")
                if path.endswith(STATE):
                    self._partition_changed((parts[3], int(parts[5])), json.loads(node.data))
                elif len(parts) == 4:
                    said = json.loads(node.data)
                    self._ids[parts[3]] = uuid_bytes(said["topic_id"])
                    for index, replicas in said["partitions"].items():
                        self._replicas[parts[3], int(index)] = tuple(replicas)

    def _forget(self, topic: str) -> None:
        """It was deleted; another of its name is another."""
        for known in (self.stored, self._replicas, self.committed):
            for key in [each for each in known if each[0] == topic]:
                del known[key]
        for seen in (self._seen, self.mirrors, self._shown):
            for place in [each for each in seen if each[1][0] == topic]:
                del seen[place]
        self._batches = {place: batch for place, batch in self._batches.items() if place[0][0] != topic}
        self._appended_by = {place: node for place, node in self._appended_by.items() if place[0][0] != topic}
        self.forgetful = {place for place in self.forgetful if place[1][0] != topic}

    def _partition_changed(self, key: Key, said: dict[str, Any]) -> None:
        isr: tuple[int, ...] = tuple(said["isr"])
        elr: tuple[int, ...] = tuple(said.get("elr", ()))
        new = Stored(int(said["leader"]), int(said["leader_epoch"]), isr, elr, tuple(said["isr_epochs"]))
        old = self.stored.get(key)
        self.stored[key] = new
        replicas = self._replicas.get(key)
        if not new.isr or (replicas is not None and not set(new.isr) <= set(replicas)):
            self._blame("LeaderInIsr", f"{name(key)}: ISR {new.isr} of replicas {replicas}")
        if new.leader != -1 and new.leader not in new.isr:
            self._blame("LeaderInIsr", f"{name(key)}: {new.leader} leads, and the ISR is {new.isr}")
        if old is None:
            return
        if new.epoch < old.epoch or (new.leader != old.leader and new.epoch == old.epoch):
            self._blame("epochs", f"{name(key)}: {new} after {old}")
        if new.leader not in (-1, old.leader, *old.isr, *old.elr):
            if self._unclean:
                self.committed.pop(key, None)
            else:
                self._blame("elected", f"{name(key)}: {new.leader} leads, which was not in ISR {old.isr} or {old.elr}")
        for member in new.isr:
            if member not in old.isr:
                self.forgetful.discard((member, key))  # it was let in, and so has everything

    # -- what brokers have ---------------------------------------------------------------------

    def _look_safely(self) -> None:
        """trio's clock must not fail."""
        try:
            self.look()
        except Exception as error:
            self._cluster.blame("simulation", f"laws cannot be looked after: {error!r}", error)

    def look(self) -> None:
        self.looks += 1
        for node_id, host in self._cluster.hosts.items():
            if host.broker is None or host.life is None or not host.life.alive:
                continue
            for key, partition in host.broker.replicas.partitions.items():
                if partition.topic_id != self._ids.get(key[0]):
                    continue  # it was deleted, and this broker does not know yet
                log = partition.log
                now = (
                    partition.high_watermark,
                    log.end_offset,
                    partition.state,
                    partition.leads,
                    log.latest_epoch,
                    host.lives,
                )
                if self._seen.get((node_id, key)) != now:
                    self._seen[node_id, key] = now
                    self._changed(node_id, key, partition)

    def _changed(self, node_id: int, key: Key, partition: Partition) -> None:
        self.checked += 1
        mirror = self.mirrors.setdefault((node_id, key), Mirror())
        stored = self.stored.get(key)
        for entry in mirror.update(partition.log):
            known = self._batches.setdefault((key, entry.base, entry.epoch), (entry.next, entry.crc))
            if known != (entry.next, entry.crc):
                self._blame("LogMatching", f"{name(key)}: two batches at {entry.base} in epoch {entry.epoch}")
            if partition.leads and entry.epoch == partition.leader_epoch:
                first = self._appended_by.setdefault((key, entry.epoch), node_id)
                if first != node_id:
                    self._blame("OneAppender", f"{name(key)}: {first} and {node_id} append in epoch {entry.epoch}")
        if stored is None:
            return
        if partition.leads:
            self._leads(node_id, key, partition, mirror)
        for other, host in self._cluster.hosts.items():
            if (
                host.broker is not None
                and (leader := host.broker.replicas.partitions.get(key)) is not None
                and leader.leads
            ):
                self._strong_isr(other, leader, key, stored)

    def _leads(self, node_id: int, key: Key, partition: Partition, mirror: Mirror) -> None:
        committed = self.committed.get(key, (0, 0))
        life = self._cluster.hosts[node_id].lives
        before, since, shown = self._shown.get((node_id, key), (0, -1, 0))
        if before != life:
            since = -1
        # If it was elected in a life before, it serves nobody before it is elected again.
        elected = self._elected_in_this_life(node_id, partition)
        if partition.leader_epoch != since and partition.leader_epoch == self.stored[key].epoch and elected:
            prefix = mirror.prefix(committed[0])
            if prefix != committed[1]:
                self._blame(
                    "Committed",
                    f"{name(key)}: {node_id} leads in epoch {partition.leader_epoch} with {mirror.end}, and up to "
                    f"{committed[0]} was committed: {told(mirror.entries, committed[0])}",
                )
        elif partition.leader_epoch == since and partition.high_watermark < shown:
            self._blame("HighWatermark", f"{name(key)}: {node_id} shows {partition.high_watermark} after {shown}")
        self._shown[node_id, key] = life, partition.leader_epoch, partition.high_watermark
        prefix = mirror.prefix(partition.high_watermark)
        if partition.high_watermark > committed[0] and prefix is not None:
            self.committed[key] = partition.high_watermark, prefix

    def _elected_in_this_life(self, node_id: int, partition: Partition) -> bool:
        life = self._cluster.hosts[node_id].life
        epoch = self._cluster.keeper.registered(life, node_id) if life is not None else None
        return epoch == partition.state.leader_broker_epoch

    def _strong_isr(self, node_id: int, leader: Partition, key: Key, stored: Stored) -> None:
        reached = leader.high_watermark
        mine = self.mirrors.get((node_id, key))
        wanted = mine.prefix(reached) if mine is not None else None
        if mine is None or wanted is None:
            return
        for member in stored.isr:
            theirs = self.mirrors.get((member, key))
            if member == node_id or (member, key) in self.forgetful or theirs is None:
                continue
            if theirs.prefix(reached) != wanted:
                law = "ValidHighWatermark" if theirs.end < reached else "StrongIsr"
                self._blame(
                    law,
                    f"{name(key)}: {node_id} leads in epoch {leader.leader_epoch} with high watermark {reached}; "
                    f"{member}, in ISR {stored.isr} of epoch {stored.epoch}, has {theirs.end}, the same up to "
                    f"{common_end(mine, theirs)}",
                )

    def lost_power(self, node_id: int) -> None:
        """What a host has not synced is gone."""
        for node, key in self.mirrors:
            if node == node_id:
                self.forgetful.add((node, key))

    # -- what clients hear ---------------------------------------------------------------------

    def acknowledged(self, topic: str, index: int, end: int) -> None:
        self.look()
        if end > self.committed.get((topic, index), (0, 0))[0]:
            self._blame(
                "Acknowledged", f"{topic}-{index}: up to {end}, and committed is {self.committed.get((topic, index))}"
            )

    def _blame(self, law: str, text: str) -> None:
        self._cluster.blame(law, text)


def name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"
