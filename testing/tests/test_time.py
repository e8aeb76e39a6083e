"""`advance`: what is due by it, and who has a moment of grace."""

import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import OffsetAndMetadata, TopicPartition

from trilogue.broker.tests.running import Raw
from trilogue.testing import Broker, Cluster
from trilogue.testing.tests.asking import create, produce
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from trilogue.wire.errors import ErrorCode

DAY_SECONDS = 24 * 3600
NOT_A_MEMBER = ErrorCode.UNKNOWN_MEMBER_ID


def until(look, seconds=10):
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline


@contextmanager
def asking(**settings):
    with Broker(offsets_topic_num_partitions=1, **settings) as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        request = FindCoordinatorRequest(coordinator_keys=["g"], key_type=0)
        until(lambda: raw.ask(request, 4, FindCoordinatorResponse).coordinators[0].error_code == 0)
        yield broker, raw


class Classic:
    """A member of the classic protocol that heartbeats when it is told to."""

    def __init__(self, raw):
        self._raw = raw
        protocols = [JoinGroupRequest.Protocol(name="range", metadata=b"")]
        joined = raw.ask(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=protocols,
            ),
            3,
            JoinGroupResponse,
        )
        self.id, self.generation = joined.member_id, joined.generation_id
        raw.ask(SyncGroupRequest(group_id="g", generation_id=self.generation, member_id=self.id), 2, SyncGroupResponse)

    def beat(self):
        request = HeartbeatRequest(group_id="g", generation_id=self.generation, member_id=self.id)
        return self._raw.ask(request, 2, HeartbeatResponse).error_code


class New:
    """A member of KIP-848's."""

    def __init__(self, raw):
        self._raw, self._epoch = raw, 0
        self._epoch = self._say(rebalance_timeout_ms=60_000, subscribed_topic_names=["orders"], topic_partitions=[])

    def _say(self, **more):
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=self._epoch, **more)
        answer = self._raw.ask(request, 0, ConsumerGroupHeartbeatResponse)
        self.error = answer.error_code
        return answer.member_epoch

    def beat(self):
        self._say()
        return self.error


BOTH = pytest.mark.parametrize("kind", [Classic, New])


@BOTH
def test_whose_session_is_over_and_who_is_not_heard_from_is_put_out(kind):
    with asking() as (broker, raw):
        member = kind(raw)
        assert member.beat() == 0
        broker.advance(44, grace=0)
        assert member.beat() == 0
        broker.advance(46, grace=0)
        until(lambda: not members(broker))
        assert member.beat() == NOT_A_MEMBER


@BOTH
def test_who_is_heard_from_in_time_stays_however_far_the_jump(kind):
    with asking() as (broker, raw):
        member = kind(raw)
        broker.advance(30 * DAY_SECONDS, grace=0.3)
        assert member.beat() == 0
        over = time.monotonic() + 0.4
        while time.monotonic() < over:
            assert member.beat() == 0
        assert members(broker) == 1


@BOTH
def test_who_is_silent_is_there_until_the_grace_is_over(kind):
    with asking() as (broker, raw):
        kind(raw)
        began = time.monotonic()
        broker.advance(60, grace=0.3)
        until(lambda: not members(broker))
        assert time.monotonic() - began >= 0.3


def members(broker):
    return sum(
        len(group.members) for shard in broker.server.broker.groups.shards() for group in shard.machine.groups.values()
    )


def test_a_stock_consumer_that_is_alive_keeps_its_place():
    with Broker() as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        consumer = ConfluentConsumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "g", "heartbeat.interval.ms": 100}
        )
        consumer.subscribe(["orders"])
        with broker.history.recording() as history:
            until(lambda: consumer.poll(0.05) is None and settled(history))
            history.clear()
            broker.advance(7 * DAY_SECONDS, grace=2)
            over = time.monotonic() + 2.2
            while time.monotonic() < over:
                consumer.poll(0.05)
        assert history.of("Heartbeat", group="g")
        assert history.of("JoinGroup", group="g") == []
        consumer.close()


def settled(history):
    """Whether the last five things that the group heard of were heartbeats."""
    return [sent.api for sent in history if "g" in {each.group for each in sent.about}][-5:] == ["Heartbeat"] * 5


def test_grace_is_as_long_as_members_need_and_nobody_waits_where_there_are_none():
    with asking() as (broker, raw):
        runner = broker.server.broker.groups
        broker.advance(1)
        assert held(broker, runner) <= 0
        Classic(raw)
        broker.advance(1)
        assert 5 < held(broker, runner) <= 5.5  # told to heartbeat every five seconds, and half a second more


def held(broker, runner):
    import trio

    return runner._held_until - broker._kept.do(trio.current_time)


def test_time_does_not_go_back():
    with Broker() as broker, pytest.raises(ValueError, match="time does not go back"):
        broker.advance(-1)


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced():
    with Broker(transaction_state_log_num_partitions=1) as broker:
        producer = ConfluentProducer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "transaction.timeout.ms": 60_000}
        )
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("orders", b"1")
        producer.flush(10)

        broker.advance(61)

        with pytest.raises(KafkaException) as fenced:
            producer.commit_transaction(10)
        assert fenced.value.args[0].txn_requires_abort() or fenced.value.args[0].fatal()
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=300,
        )
        assert list(consumer) == []
        consumer.close()


def test_offsets_of_a_group_that_nobody_needs_are_forgotten():
    with Broker() as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        place = TopicPartition("orders", 0)
        consumer = KafkaConsumer(group_id="g", bootstrap_servers=broker.bootstrap, enable_auto_commit=False)
        consumer.assign([place])
        consumer.commit({place: OffsetAndMetadata(0, "", -1)})
        consumer.close()

        def committed():
            return sum(len(shard.machine.offsets.of("g")) for shard in broker.server.broker.groups.shards())

        broker.advance(6 * DAY_SECONDS)
        assert committed() == 1
        broker.advance(2 * DAY_SECONDS)
        until(lambda: committed() == 0)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        assert "g" not in str(admin.list_groups())
        admin.close()


def test_a_producer_that_is_silent_for_a_day_is_forgotten():
    with Broker() as broker:
        producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        producer.produce("orders", b"1")
        producer.flush(10)
        log = broker.server.broker.replicas.find("orders", 0).log
        assert len(list(log.producers())) == 1

        broker.advance(2 * DAY_SECONDS)
        broker.run_retention()

        assert list(log.producers()) == []


def test_time_passes_on_all_brokers_of_a_cluster():
    with Cluster(2, log_retention_hours=1) as cluster:
        with Raw(cluster[1].server) as raw:
            create(raw, "orders", partitions=2)
        for broker in cluster:
            place = next(index for index in (0, 1) if cluster.leader_of("orders", index) == broker.node_id)
            with Raw(broker.server) as raw:
                assert produce(raw, ("orders", place)) == {("orders", place): 0}
        cluster.run_retention()
        assert [starts(broker) for broker in cluster] == [0, 0]

        cluster.advance(2 * 3600)
        cluster.run_retention()
        cluster.run_compaction()

        assert [starts(broker) for broker in cluster] == [1, 1]


def starts(broker):
    return sum(each.log.start_offset for each in broker.server.broker.replicas if each.leads)
