"""Records in and out of a broker for tests, by the smallest requests there are."""

import time

from trilogue.broker.tests.running import Raw
from trilogue.storage.tests.making import batch
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse

PRODUCE, FETCH = 9, 11
"""Versions that say topics by name, and of Produce the first that templates are made of."""


def create(raw: Raw, *names: str, partitions: int = 1, replicas: int = 1) -> None:
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=replicas) for name in names
    ]
    made = raw.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5, CreateTopicsResponse)
    assert [each.error_code for each in made.topics] == [0] * len(names)


def a_produce(*places: tuple[str, int], acks: int = -1) -> ProduceRequest:
    topics: dict[str, list[ProduceRequest.Topic.Partition]] = {}
    for name, index in places:
        records = bytes(batch(b"v", timestamp=time.time_ns() // 1_000_000))
        topics.setdefault(name, []).append(ProduceRequest.Topic.Partition(index=index, records=records))
    return ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=[ProduceRequest.Topic(name=name, partition_data=data) for name, data in topics.items()],
    )


def produce(raw: Raw, *places: tuple[str, int]) -> dict[tuple[str, int], int]:
    """One record for each; with which errors that was answered."""
    answer = raw.ask(a_produce(*places), PRODUCE, ProduceResponse)
    return {
        (topic.name, each.index): each.error_code for topic in answer.responses for each in topic.partition_responses
    }


def fetch(raw: Raw, *places: tuple[str, int], wait_ms: int = 0) -> dict[tuple[str, int], FetchResponse.Topic.Partition]:
    topics: dict[str, list[FetchRequest.Topic.Partition]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(FetchRequest.Topic.Partition(partition=index, partition_max_bytes=1 << 20))
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[FetchRequest.Topic(topic=name, partitions=data) for name, data in topics.items()],
    )
    answer = raw.ask(request, FETCH, FetchResponse)
    return {(topic.topic, each.partition_index): each for topic in answer.responses for each in topic.partitions}
