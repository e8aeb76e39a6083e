"""A coordinator on a stage: time is what we say, the log is a list, and every request is a line."""

from trilogue.broker.cluster.image import Image, PartitionState, Topic
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.groups.requests import classic, consumer, offsets
from trilogue.broker.groups.world import Caller
from trilogue.broker.machines.effects import Reply, Store
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from trilogue.wire.codec import build
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolSubscription
from trilogue.wire.schema import ZERO_UUID

START_MS = 1_700_000_000_000


def topic_id(name):
    return name.encode().ljust(16, b"_")[:16]


def image(**partitions):
    """A cluster with these topics, by name and number of partitions."""
    topics = {
        name.replace("_", "-"): Topic(
            name.replace("_", "-"), topic_id(name.replace("_", "-")), (PartitionState((1,), 1, 0, (1,)),) * count
        )
        for name, count in partitions.items()
    }
    return Image(topics=topics, topic_names={each.id: each.name for each in topics.values()})


def subscription(*topics):
    return b"\0\0" + build(ConsumerProtocolSubscription(topics=list(topics)), 0)


class World:
    def __init__(self, settings, topics):
        self.config = BrokerConfig.parse({**DEVELOPMENT, **settings})
        self.image = image(**topics)
        self.now_ms = START_MS

    def clock(self):
        return self.now_ms


class Ticket:
    """A question, and its answer once there is one."""

    response = None

    def __repr__(self):
        return f"Ticket({self.response})"


class Beat:
    """The answer to a heartbeat, easy to look at."""

    def __init__(self, response):
        self.response = response
        self.code, self.epoch, self.member = response.error_code, response.member_epoch, response.member_id
        self.assigned = None
        if response.assignment is not None:
            self.assigned = {
                (each.topic_id.rstrip(b"_").decode(), index)
                for each in response.assignment.topic_partitions
                for index in each.partitions
            }

    def __eq__(self, other):
        return (self.epoch, self.assigned) == other

    def __repr__(self):
        return f"Beat({self.code!r}, {self.epoch}, {self.assigned})"


class Stage:
    def __init__(self, topics=None, **settings):
        self.world = World({name.replace("_", "."): str(value) for name, value in settings.items()}, topics or {"t": 4})
        self.now = 0.0
        self.log = []
        self.open()

    # -- what the runner would do --------------------------------------------------------------

    def open(self):
        """As after a restart: everything that is known is in the log."""
        self.machine = GroupCoordinator(self.world)
        for offset, entry in enumerate(self.log):
            match entry:
                case (put, producer_id):
                    self.machine.replay(put, offset, producer_id)
                case (None, producer_id, committed):
                    self.machine.replay_end(producer_id, committed)
        self.carry_out(self.machine.loaded(self.now))

    def carry_out(self, todo):
        for effect in todo:
            match effect:
                case Store(records, producer_id):
                    for put in records:
                        self.log.append((put, producer_id))
                        self.machine.replay(put, len(self.log) - 1, producer_id)
                case Reply(ticket, response):
                    assert ticket.response is None, "answered twice"
                    ticket.response = response
        return todo

    def ask(self, act, *arguments):
        ticket = Ticket()
        self.carry_out(act(self.machine, self.now, *arguments, ticket))
        return ticket

    def at(self, now):
        """It is so late now."""
        self.world.now_ms += round((now - self.now) * 1000)
        self.now = now
        if self.machine.deadline <= now:
            self.carry_out(self.machine.tick(now))
        return self

    def end_transaction(self, producer_id, committed):
        self.log.append((None, producer_id, committed))
        self.machine.replay_end(producer_id, committed)

    # -- classic members -----------------------------------------------------------------------

    def join(
        self,
        member="",
        *,
        group="g",
        version=9,
        instance=None,
        session=10,
        rebalance=30,
        kind="consumer",
        protocols=None,
        client="c",
        fresh="1",
    ):
        protocols = {"range": subscription("t")} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=int(session * 1000),
            rebalance_timeout_ms=int(rebalance * 1000),
            member_id=member,
            group_instance_id=instance,
            protocol_type=kind,
            protocols=[JoinGroupRequest.Protocol(name=name, metadata=told) for name, told in protocols.items()],
        )
        return self.ask(classic.join, request, Caller(version, client, "/h"), fresh)

    def sync(self, member, generation, *, group="g", instance=None, kind=None, protocol=None, **assignments):
        """Assignments by member, with underscores for dashes."""
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type=kind,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequest.Assignment(member_id=name.replace("_", "-"), assignment=given)
                for name, given in assignments.items()
            ],
        )
        return self.ask(classic.sync, request)

    def heartbeat(self, member, generation, *, group="g", instance=None):
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
        )
        return self.ask(classic.heartbeat, request).response.error_code

    def leave(self, *members, group="g", instances=()):
        asked = [LeaveGroupRequest.Member(member_id=each) for each in members]
        asked += [LeaveGroupRequest.Member(member_id="", group_instance_id=each) for each in instances]
        answer = self.ask(classic.leave, LeaveGroupRequest(group_id=group, member_id="", members=asked)).response
        return [each.error_code for each in answer.members]

    def stable(self, *clients, **more):
        """A stable group of these; their ids are c-1 for client c."""
        for client in clients:
            self.join(client=client, version=3, **more)
        members = [f"{client}-1" for client in clients]
        for member in members[:-1]:
            self.join(member, **more)
        generation = self.group().generation
        for member in reversed(members):
            self.sync(member, generation, **{each.replace("-", "_"): each.encode() for each in members})
        assert self.group().state_name == "Stable"
        return generation

    def group(self, group="g"):
        return self.machine.groups.get(group)

    # -- members of consumer groups ------------------------------------------------------------

    def beat(
        self,
        member="m",
        epoch=0,
        *,
        group="g",
        topics=None,
        regex=None,
        owned=...,
        instance=None,
        rebalance=...,
        assignor=None,
        version=1,
        rack=None,
    ):
        """A heartbeat: whoever joins tells everything, whoever stays nothing.  `owned` is (topic, partition)s."""
        if epoch == 0:
            topics = ["t"] if topics is None and regex is None else topics
            owned = [] if owned is ... else owned
            rebalance = 30 if rebalance is ... else rebalance
        if owned is ...:
            owned = None
        TopicPartitions = ConsumerGroupHeartbeatRequest.TopicPartitions
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=-1 if rebalance in (..., None) else int(rebalance * 1000),
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else [TopicPartitions(topic_id=topic_id(topic), partitions=[index]) for topic, index in owned],
        )
        return Beat(self.ask(consumer.heartbeat, request, Caller(version, "c", "/h"), "fresh").response)

    # -- offsets -------------------------------------------------------------------------------

    def commit(
        self,
        offset=5,
        *,
        group="g",
        member="",
        generation=-1,
        instance=None,
        version=9,
        topic="t",
        partition=0,
        metadata="m",
        retention_ms=-1,
        by_id=None,
        epoch=-1,
        **more,
    ):
        committed = OffsetCommitRequest.Topic.Partition(
            partition_index=partition,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=epoch,
            **more,
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequest.Topic(
                    name="" if by_id else topic, topic_id=by_id or ZERO_UUID, partitions=[committed]
                )
            ],
        )
        answer = self.ask(offsets.commit, request, Caller(version)).response
        return answer.topics[0].partitions[0].error_code

    def commit_in_transaction(
        self, offset, producer_id=7, *, group="g", member="", generation=-1, instance=None, topic="t", partition=0
    ):
        Partition = TxnOffsetCommitRequest.Topic.Partition
        committed = Partition(partition_index=partition, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            topics=[TxnOffsetCommitRequest.Topic(name=topic, partitions=[committed])],
        )
        answer = self.ask(offsets.commit_in_transaction, request, Caller(3)).response
        return answer.topics[0].partitions[0].error_code

    def fetch(self, *partitions, group="g", topic="t", stable=False, member=None, epoch=-1, version=9, topics=...):
        """What was committed: (partition, offset, error) of one topic, or of all if none is named."""
        if topics is ...:
            topics = [OffsetFetchRequest.Group.Topic(name=topic, partition_indexes=list(partitions))]
        asked = OffsetFetchRequest.Group(group_id=group, member_id=member, member_epoch=epoch, topics=topics)
        answer = self.ask(offsets.fetch, asked, stable, Caller(version)).response
        if answer.error_code:
            return answer.error_code
        return [
            (each.partition_index, each.committed_offset, each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        ]

    def offset(self, partition=0, group="g", topic="t"):
        ((_, offset, _),) = self.fetch(partition, group=group, topic=topic)
        return offset
