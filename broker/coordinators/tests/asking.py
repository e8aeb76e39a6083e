"""Requests of transactional producers, and a way to put them to a broker's handlers without a socket."""

import time
from typing import Any

from trilogue.broker.broker import Broker
from trilogue.broker.requests.later import settled
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import APIS
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from trilogue.wire.apis.create_topics import CreateTopicsRequest
from trilogue.wire.apis.end_txn import EndTxnRequest
from trilogue.wire.apis.fetch import FetchRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.records import Record, build

PARTITIONS = 2


async def ask(broker: Broker, request: Any, version: int) -> Any:
    peer = Peer("PLAINTEXT", "127.0.0.1", ("127.0.0.1", 0))
    peer.version, peer.client_id = version, "test"
    return await settled(APIS[request.api_key].handler(broker, request, peer))


def find(name: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=name, key_type=1)


def init(name: str, timeout_ms: int = 60_000) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)


def end(name: str, producer_id: int, epoch: int, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=committed)


def create(topic: str, partitions: int = PARTITIONS) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic(
        name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=5000)


def write(name: str, producer_id: int, epoch: int, sequence: int, place: tuple[str, int], value: bytes) -> Any:
    batch = build(
        [Record(0, time.time_ns() // 1_000_000, None, value)],  # far from the markers' time it would roll the segment
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    data = ProduceRequest.Topic.Partition(index=place[1], records=memoryview(batch))
    return ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=5000,
        topic_data=[ProduceRequest.Topic(name=place[0], partition_data=[data])],
    )


def read(topic: str, index: int) -> FetchRequest:
    wanted = FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])],
        forgotten_topics_data=[],
    )


def add(name: str, producer_id: int, epoch: int, *places: tuple[str, int]) -> AddPartitionsToTxnRequest:
    """As clients of the first generation do."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[
            Topic(name=topic, partitions=[index for each, index in places if each == topic])
            for topic in sorted({topic for topic, _ in places})
        ],
    )
