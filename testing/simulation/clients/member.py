"""Members of a group, of either protocol, that commit offsets as if they read: each goes on where the group is.

The offsets are made up, and a broker does not mind.  What counts is that they never go back, and that nothing is owned
by two in one generation.
"""

import json
from typing import TYPE_CHECKING, Any

from trilogue.client.coordinators import GROUP, coordinator
from trilogue.client.dialogue import check
from trilogue.testing.simulation.clients.party import TIMEOUT_SECONDS, TROUBLES, Party
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from trilogue.wire.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

SESSION_MS = 3000
REBALANCE_MS = 4000
BEAT_SECONDS = 0.4
NOTHING = -1
JOINING, LEAVING = 0, -1


class Member(Party):
    """What both protocols have in common: offsets."""

    group: str
    cap = 8
    """Of OffsetCommit: the newer ones are for members of the new protocol."""

    def __init__(self, cluster: "Cluster", name: str, topic: str, partitions: int) -> None:
        super().__init__(cluster, name)
        self._topic, self._partitions = topic, partitions
        self._member, self._generation = "", NOTHING
        self._owned: dict[int, int] = {}
        """What is ours, and where we are."""

    async def live(self) -> None:
        self._member, self._generation, self._owned = "", NOTHING, {}
        while not self.ending.is_set():
            try:
                await self.take_part()
            except TROUBLES as error:
                self.refused(error)
                await self.rest(error)

    async def take_part(self) -> None:
        raise NotImplementedError

    def refused(self, error: Exception) -> None:
        """Who is not known any more, or not in this generation, begins anew."""
        if isinstance(error, BrokerError) and error.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.STALE_MEMBER_EPOCH,
        ):
            self._owned, self._generation = {}, NOTHING
            if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
                self._member = ""

    async def own(self, partitions: list[int]) -> None:
        """From now on these, each from where the group is."""
        fresh = [each for each in partitions if each not in self._owned]
        self._owned = {each: at for each, at in self._owned.items() if each in partitions}
        self.history.add(
            self.name,
            "owns",
            group=self.group,
            member=self._member,
            generation=self._generation,
            partitions=sorted(partitions),
        )
        self.cluster.groups.owns(self.group, self._generation, self._member, partitions)
        if fresh:
            known = {each: self.cluster.groups.committed(self.group, each) for each in fresh}
            link = await coordinator(self.client, GROUP, self.group)
            wanted = [OffsetFetchRequest.Topic(name=self._topic, partition_indexes=fresh)]
            request = OffsetFetchRequest(group_id=self.group, topics=wanted, require_stable=True)
            answer = await link.call(request, OffsetFetchResponse, cap=7, seconds=TIMEOUT_SECONDS)
            check(answer.error_code)
            for each in answer.topics[0].partitions:
                check(each.error_code)
                index, offset = each.partition_index, each.committed_offset
                self.history.add(
                    self.name, "resumes", group=self.group, member=self._member, partition=index, offset=offset
                )
                if offset < known[index]:
                    self.cluster.blame(
                        "Offsets", f"{self.name}: {self.group} is at {offset} in {index}, and was at {known[index]}"
                    )
                self._owned[index] = max(offset, 0)

    async def commit(self) -> None:
        """As if something had been read of everything that is ours."""
        if not self._owned:
            return
        now = {index: at + self.chance.choice((1, 1, 5)) for index, at in self._owned.items()}
        Topic = OffsetCommitRequest.Topic
        places = [
            Topic.Partition(partition_index=index, committed_offset=at, committed_metadata="")
            for index, at in now.items()
        ]
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member,
            topics=[Topic(name=self._topic, partitions=places)],
        )
        link = await coordinator(self.client, GROUP, self.group)
        answer = await link.call(request, OffsetCommitResponse, cap=self.cap, seconds=TIMEOUT_SECONDS)
        for each in answer.topics[0].partitions:
            check(each.error_code)
        for index, at in now.items():
            if index in self._owned:
                self._owned[index] = at
            self.history.add(self.name, "commits", group=self.group, member=self._member, partition=index, offset=at)
            self.cluster.groups.commits(self.group, index, at)


class ClassicMember(Member):
    group = "classic"

    async def take_part(self) -> None:
        link = await coordinator(self.client, GROUP, self.group)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member,
            protocol_type="simulation",
            protocols=[JoinGroupRequest.Protocol(name="turns", metadata=b"")],
        )
        joined = await link.call(request, JoinGroupResponse, cap=7, seconds=TIMEOUT_SECONDS + REBALANCE_MS / 1000)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member = joined.member_id
            return
        check(joined.error_code)
        self._member, self._generation = joined.member_id, joined.generation_id
        self._owned = {}
        assignments = self._assign(joined) if joined.leader == joined.member_id else []
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=self._generation,
            member_id=self._member,
            protocol_type="simulation",
            protocol_name="turns",
            assignments=assignments,
        )
        synced = await link.call(sync, SyncGroupResponse, cap=5, seconds=TIMEOUT_SECONDS + REBALANCE_MS / 1000)
        check(synced.error_code)
        await self.own(json.loads(bytes(synced.assignment) or b"[]"))
        while not self.ending.is_set():
            await self.pause(BEAT_SECONDS)
            beat = HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self._member)
            check((await link.call(beat, HeartbeatResponse, cap=4, seconds=TIMEOUT_SECONDS)).error_code)
            await self.commit()

    def _assign(self, joined: JoinGroupResponse) -> list[Any]:
        """In turns."""
        members = sorted(each.member_id for each in joined.members)
        parts: dict[str, list[int]] = {each: [] for each in members}
        for index in range(self._partitions):
            parts[members[index % len(members)]].append(index)
        return [
            SyncGroupRequest.Assignment(member_id=each, assignment=json.dumps(mine).encode())
            for each, mine in parts.items()
        ]


class ModernMember(Member):
    """KIP-848: the coordinator assigns, and takes back before it gives to others."""

    group = "modern"
    cap = 9

    async def take_part(self) -> None:
        link = await coordinator(self.client, GROUP, self.group)
        topic = await self.client.topic(self._topic)
        if not self._member:
            self._member = f"{self.name}-{self.lives}-{self.chance.randrange(1 << 30)}"
        self._generation = JOINING
        self._owned = {}
        first = True
        while not self.ending.is_set():
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self._member,
                member_epoch=self._generation,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[self._topic] if first else None,
                server_assignor="uniform" if first else None,
                topic_partitions=self._said(topic.topic_id),
            )
            answer = await link.call(request, ConsumerGroupHeartbeatResponse, cap=1, seconds=TIMEOUT_SECONDS)
            check(answer.error_code)
            first = False
            self._generation = answer.member_epoch
            if answer.assignment is not None:
                await self.own([each for one in answer.assignment.topic_partitions for each in one.partitions])
            else:
                await self.pause(BEAT_SECONDS)
                await self.commit()

    def _said(self, topic_id: bytes) -> list[Any]:
        """What we own."""
        if not self._owned:
            return []
        Mine = ConsumerGroupHeartbeatRequest.TopicPartitions
        return [Mine(topic_id=topic_id, partitions=sorted(self._owned))]


class Groups:
    """What is known of groups by all together: where they were said to be, and who owned what."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._committed: dict[tuple[str, int], int] = {}
        self._owners: dict[tuple[str, int, int], str] = {}

    def committed(self, group: str, partition: int) -> int:
        return self._committed.get((group, partition), NOTHING)

    def commits(self, group: str, partition: int, offset: int) -> None:
        before = self.committed(group, partition)
        if offset > before:
            self._committed[group, partition] = offset

    def owns(self, group: str, generation: int, member: str, partitions: list[int]) -> None:
        for each in partitions:
            first = self._owners.setdefault((group, generation, each), member)
            if first != member:
                self._cluster.blame("Owners", f"{group}: {first} and {member} own {each} in generation {generation}")
