"""What a client can ask for that is little to send and much to answer."""

import time
from collections.abc import Callable
from struct import pack_into
from typing import Any, NamedTuple
from zlib import crc32

from bench.asking import Connection, encoded
from bench.brokers import Broker
from trilogue.wire import legacy
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.apis.create_topics import CreateTopicsRequest
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest
from trilogue.wire.apis.fetch import FetchRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from trilogue.wire.apis.list_offsets import ListOffsetsRequest
from trilogue.wire.apis.metadata import MetadataRequest
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.compression import Codec, compress
from trilogue.wire.errors import ErrorCode
from trilogue.wire.records import HEADER_SIZE, LOG_OVERHEAD, Record, build, checksum

NOW_MS = 1_700_000_000_000
MANY_TOPICS = 3000
TINY_RECORDS, OLD_MESSAGES = 8_000_000, 5_000_000
ALLOWED_RECORDS, ALLOWED_MESSAGES = 1_000_000, 900_000
"""Just below what we take."""
LENGTH_AT, CHECKSUM_AT, ATTRIBUTES_AT, COUNT_AT = 8, 17, 21, 57
OLD_CHECKSUM_AT, OLD_MAGIC_AT, OLD_ATTRIBUTES_AT = 12, 16, 17
TOPIC = 2
"""The type of a resource."""


class Attack(NamedTuple):
    name: str
    prepare: Callable[[Broker], Any]
    """What is there before it begins; the result is given to `run`."""
    run: Callable[[Broker, Any], str]
    """Answers what it was told."""


def code(number: int) -> str:
    return ErrorCode(number).name


def nothing(broker: Broker) -> None:
    pass


# -- more answers than questions -----------------------------------------------------------------


def wide_topic(broker: Broker) -> None:
    broker.create("wide", 2000)


def pipelined(frame: bytes, total: int) -> Callable[[Broker, Any], str]:
    def run(broker: Broker, _: Any) -> str:
        connection = Connection(broker.address)
        count = total // len(frame)
        connection.send(frame * count)
        for _ in range(count):
            connection.receive()
        connection.close()
        return f"{count} answers"

    return run


METADATA = encoded(MetadataRequest(topics=[MetadataRequest.Topic(name="wide")]), 9)
CONFIGS = encoded(
    DescribeConfigsRequest(resources=[DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name="wide")]), 4
)


# -- waiting -------------------------------------------------------------------------------------


def many_partitions(broker: Broker) -> None:
    broker.create("watched", 1000)
    connection = Connection(broker.address)
    for partition in range(1000):  # the first append makes files, which is another matter
        connection.ask(produce("watched", bytes(build([Record(0, NOW_MS, None, b"first")])), partition), 9)
    connection.close()


def waiting_fetches(broker: Broker, _: Any) -> str:
    """Forty wait for more than ever comes, while somebody produces to what they wait for."""
    partitions = [
        FetchRequest.Topic.Partition(partition=index, fetch_offset=1, partition_max_bytes=1 << 20)
        for index in range(1000)
    ]
    asked = FetchRequest(
        max_wait_ms=5000,
        min_bytes=2**31 - 1,
        max_bytes=2**31 - 1,
        topics=[FetchRequest.Topic(topic="watched", partitions=partitions)],
    )
    waiting = [Connection(broker.address) for _ in range(40)]
    for each in waiting:
        each.send(encoded(asked, 11))
    time.sleep(1.0)
    producer = Connection(broker.address)
    batch = bytes(build([Record(0, NOW_MS, None, bytes(100))]))
    took = []
    until = time.monotonic() + 3
    while time.monotonic() < until:
        begun = time.monotonic()
        producer.ask(produce("watched", batch, len(took) % 1000), 9)
        took.append(time.monotonic() - begun)
    for each in waiting:
        each.receive()
        each.close()
    took.sort()
    return f"its own produce p50 {took[len(took) // 2] * 1000:.1f} ms"


def produce(topic: str, batch: bytes, partition: int = 0) -> ProduceRequest:
    data = ProduceRequest.Topic.Partition(index=partition, records=batch)
    return ProduceRequest(
        acks=1, timeout_ms=60_000, topic_data=[ProduceRequest.Topic(name=topic, partition_data=[data])]
    )


# -- many topics ---------------------------------------------------------------------------------


def many_topics(broker: Broker) -> Connection:
    connection = Connection(broker.address)
    for start in range(0, MANY_TOPICS, 500):
        connection.ask(CreateTopicsRequest(topics=[new(f"t{start + i}", 1) for i in range(500)], timeout_ms=60_000), 5)
    return connection


def new(name: str, partitions: int) -> CreateTopicsRequest.Topic:
    return CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )


def alter_configs(broker: Broker, connection: Connection) -> str:
    resource = IncrementalAlterConfigsRequest.Resource
    for number in range(200):
        setting = resource.Config(name="retention.ms", config_operation=0, value=str(1000 + number))
        changed = resource(resource_type=TOPIC, resource_name=f"t{number}", configs=[setting])
        connection.ask(IncrementalAlterConfigsRequest(resources=[changed], validate_only=False), 1)
    return "200 changes"


def delete_topics(broker: Broker, connection: Connection) -> str:
    for number in range(200):
        connection.ask(DeleteTopicsRequest(topic_names=[f"t{number}"], timeout_ms=60_000), 4)
    return "200 topics gone"


def create_many(broker: Broker, _: Any) -> str:
    connection = Connection(broker.address)
    made = connection.ask(CreateTopicsRequest(topics=[new("huge", 10_000)], timeout_ms=60_000), 5)
    connection.close()
    return code(made.topics[0].error_code)


def many_topics_and_a_group(broker: Broker) -> Connection:
    connection = many_topics(broker)
    connection.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["patterns"]), 4)  # makes what groups need
    return connection


PATTERNS_SECONDS = 30.0
"""Each takes longer than the one before where all of them are matched again: 0.1.0 takes ten minutes for a thousand."""


def patterns(broker: Broker, connection: Connection) -> str:
    until = time.monotonic() + PATTERNS_SECONDS
    for number in range(1000):
        if time.monotonic() > until:
            return f"{number} members by then"
        beat = ConsumerGroupHeartbeatRequest(
            group_id="patterns",
            member_id=f"{number:022d}",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=f"t.*|x{number}",
            topic_partitions=[],
        )
        answer = connection.ask(beat, 1)
        if answer.error_code:
            return f"{code(answer.error_code)} after {number}"
    return "1,000 members"


# -- bombs ---------------------------------------------------------------------------------------


def tiny(codec: Codec, count: int = TINY_RECORDS) -> bytes:
    """A batch of as many records as small as can be, of which nothing is left when it is compressed: all are alike but
    for the last, which knows its place and is later than the others."""
    like = build([Record(0, NOW_MS, b"", b"")])
    two = build([Record(0, NOW_MS, b"", b""), Record(count - 1, NOW_MS + 1, b"", b"")])
    inside = bytes(like[HEADER_SIZE:]) * (count - 1) + bytes(two[len(like) :])
    batch = two[:HEADER_SIZE] + compress(codec, inside)
    pack_into(">i", batch, LENGTH_AT, len(batch) - LOG_OVERHEAD)
    pack_into(">hi", batch, ATTRIBUTES_AT, codec, count - 1)
    pack_into(">i", batch, COUNT_AT, count)
    pack_into(">I", batch, CHECKSUM_AT, checksum(memoryview(batch)[ATTRIBUTES_AT:]))
    return bytes(batch)


def bomb_into(topic: str, count: int) -> Callable[[Broker], bytes]:
    def prepare(broker: Broker) -> bytes:
        broker.create(topic, cleanup_policy="compact")
        return encoded(produce(topic, in_order(Codec.ZSTD, count)), 9)

    return prepare


def in_order(codec: Codec, count: int) -> bytes:
    """Likewise, but each record knows its place, so that all of them have to be looked at."""
    if count > ALLOWED_RECORDS:
        return tiny(codec, count)  # which is told from that by nobody who refuses so many
    records = (Record(number, NOW_MS, b"", b"") for number in range(count))
    return bytes(build(records, codec=codec))


def throw(broker: Broker, frame: bytes) -> str:
    connection = Connection(broker.address)
    connection.send(frame)
    answer = connection.hear(ProduceRequest.api_key, 9)
    connection.close()
    return f"{len(frame):,} bytes: {code(answer.responses[0].partition_responses[0].error_code)}"


def old_bomb(count: int) -> Callable[[Broker], bytes]:
    def prepare(broker: Broker) -> bytes:
        broker.create("old")
        message = legacy.build([Record(0, NOW_MS, None, b"")], 1)
        wrapped = compress(Codec.GZIP, message * count)
        bomb = bytearray(legacy.build([Record(0, NOW_MS, None, bytes(wrapped))], 1))
        bomb[OLD_ATTRIBUTES_AT] = Codec.GZIP
        pack_into(">I", bomb, OLD_CHECKSUM_AT, crc32(memoryview(bomb)[OLD_MAGIC_AT:]))
        return encoded(produce("old", bytes(bomb)), 2)

    return prepare


def throw_old(broker: Broker, frame: bytes) -> str:
    connection = Connection(broker.address)
    connection.send(frame)
    answer = connection.hear(ProduceRequest.api_key, 2)
    connection.close()
    return f"{len(frame):,} bytes: {code(answer.responses[0].partition_responses[0].error_code)}"


def planted(codec: Codec) -> Callable[[Broker], str]:
    """As many records as a plain topic takes in one batch."""

    def prepare(broker: Broker) -> str:
        broker.create("plain")
        told = ""
        for count in (TINY_RECORDS, ALLOWED_RECORDS):
            told = throw(broker, encoded(produce("plain", tiny(codec, count)), 9))
            if told.endswith("NONE"):
                return f"{count:,} records"
        return told

    return prepare


def look_up(broker: Broker, thrown: str) -> str:
    asked = ListOffsetsRequest.Topic.Partition(partition_index=0, current_leader_epoch=-1, timestamp=NOW_MS + 1)
    topics = [ListOffsetsRequest.Topic(name="plain", partitions=[asked])]
    connection = Connection(broker.address)
    answer = connection.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), 7)
    connection.close()
    found = answer.topics[0].partitions[0]
    return f"{thrown}; {code(found.error_code)}, offset {found.offset}"


def read_old(broker: Broker, thrown: str) -> str:
    wanted = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[FetchRequest.Topic(topic="plain", partitions=[wanted])]
    )
    connection = Connection(broker.address)
    connection.send(encoded(asked, 3))
    answer = connection.hear(FetchRequest.api_key, 3).responses[0].partitions[0]
    connection.close()
    return f"{thrown}; {code(answer.error_code)}, {len(answer.records or b''):,} bytes"


ALL = [
    Attack("128 KiB of Metadata of 2,000 partitions", wide_topic, pipelined(METADATA, 128 << 10)),
    Attack("13.5 KB of DescribeConfigs", wide_topic, pipelined(CONFIGS, 13_500)),
    Attack("40 fetches wait over 1,000 partitions", many_partitions, waiting_fetches),
    Attack("200 IncrementalAlterConfigs among 3,000 topics", many_topics, alter_configs),
    Attack("200 DeleteTopics among 3,000 topics", many_topics, delete_topics),
    Attack("a topic of 10,000 partitions", nothing, create_many),
    Attack("1,000 patterns over 3,000 topics", many_topics_and_a_group, patterns),
    Attack("bombs: 8 million records into a compacted topic", bomb_into("compacted", TINY_RECORDS), throw),
    Attack("bombs: 5 million old messages in Produce v2", old_bomb(OLD_MESSAGES), throw_old),
    Attack("bombs: a million records into a compacted topic", bomb_into("compacted", ALLOWED_RECORDS), throw),
    Attack("bombs: 900,000 old messages in Produce v2", old_bomb(ALLOWED_MESSAGES), throw_old),
    Attack("bombs: ListOffsets by time over all that a batch takes", planted(Codec.ZSTD), look_up),
    Attack("bombs: Fetch v3 of all that a batch takes", planted(Codec.GZIP), read_old),
]
