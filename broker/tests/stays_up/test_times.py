"""Every time that can be set, at the largest and at the least that is taken: sums with the clock do no harm."""

from pathlib import Path

import pytest

from trilogue.broker.config import BrokerConfig, ConfigError
from trilogue.broker.config.catalog import BROKER, TOPIC
from trilogue.broker.config.setting import LONG, Setting
from trilogue.broker.tests.stays_up.process import NOW_MS, Client, process
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from trilogue.wire.records import Record, build

KEPT = {
    "connections.max.idle.ms",  # at 0 nobody stays connected
    "message.timestamp.before.max.ms",  # at 0 nothing is young enough
    "log.message.timestamp.before.max.ms",
}
"""Left alone at the least."""


def largest(setting: Setting) -> str:
    return str(2**63 - 1 if setting.type is LONG else 2**31 - 1)


def alone(name: str, value: str) -> bool:
    """Whether it is taken if it is the only one."""
    try:
        BrokerConfig.parse({name: value})
    except ConfigError:
        return False
    return True


def extreme(table: dict[str, Setting], which: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for name, setting in table.items():
        if not name.endswith(".ms") or name.startswith(("controller.", "remote.", "sasl.", "share.", "streams.")):
            continue
        least = [] if name in KEPT else ["-1", "0", "1"]
        for value in [largest(setting)] if which == "largest" else least:
            if table is TOPIC or alone(name, value):
                together = {**chosen, name: value}
                try:
                    BrokerConfig.parse(together if table is BROKER else {})
                except ConfigError:
                    continue
                chosen = together
                break
    return chosen


def use_everything(client: Client) -> None:
    for number in range(3):
        assert client.produce("topic", b"value %d" % number, key=b"key") == 0
    assert len(client.values("topic")) == 3
    asked = ListOffsetsRequest.Topic.Partition(partition_index=0, current_leader_epoch=-1, timestamp=NOW_MS)
    topics = [ListOffsetsRequest.Topic(name="topic", partitions=[asked])]
    client.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), 7, ListOffsetsResponse)
    for timeout_ms in (2**31 - 1, 1):
        wanted = InitProducerIdRequest(transactional_id=f"t{timeout_ms}", transaction_timeout_ms=timeout_ms)
        client.ask(FindCoordinatorRequest(key="t", key_type=1), 2, FindCoordinatorResponse)
        client.ask(wanted, 1, InitProducerIdResponse)
    for timeout_ms in (2**31 - 1, 0, -1, -(2**31)):
        protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
        join = JoinGroupRequest(
            group_id=f"g{timeout_ms}",
            session_timeout_ms=timeout_ms,
            rebalance_timeout_ms=timeout_ms,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        client.ask(join, 4, JoinGroupResponse)  # 4: nobody is let in without an id, and so nobody waits
    for retention_ms in (2**63 - 1, 0, -1, -(2**63)):
        partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1, committed_metadata="")
        commit = OffsetCommitRequest(
            group_id="simple",
            generation_id_or_member_epoch=-1,
            member_id="",
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequest.Topic(name="topic", partitions=[partition])],
        )
        client.ask(commit, 2, OffsetCommitResponse)
    for wait_ms in (0, -1, -(2**31)):
        at = FetchRequest.Topic.Partition(partition=0, fetch_offset=3, partition_max_bytes=1000)
        fetch = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1000,
            topics=[FetchRequest.Topic(topic="topic", partitions=[at])],
        )
        client.ask(fetch, 11, FetchResponse)


@pytest.mark.parametrize("which", ["largest", "least"])
def test_every_time_at_its_extremes(tmp_path: Path, which: str) -> None:
    settings = extreme(BROKER, which) | {"offsets.topic.num.partitions": "1"}
    topic = extreme(TOPIC, which)
    with process(tmp_path, **settings) as broker, broker.client() as client:
        code = client.create("topic", cleanup_policy="compact,delete", **topic)
        assert code == 0 or which == "least"
        if code:
            for name, value in topic.items():  # some of them are not taken, the others are tried one by one
                if client.create(f"with.{name}", **{name: value}) == 0:
                    client.produce(f"with.{name}", b"value", key=b"key")
            assert client.create("topic") == 0
        use_everything(client)
        client.produce_batch("topic", bytes(build([Record(0, 2**63 - 1, b"key", b"late")])))
        told = client.ask(DeleteTopicsRequest(topic_names=["topic"], timeout_ms=2**31 - 1), 4, DeleteTopicsResponse)
        assert told.responses[0].error_code == 0
        client.api_versions()
        assert broker.stop() == 0
        broken = [line for line in broker.log().splitlines() if "Error" in line or "Traceback" in line]
        assert broken == []
