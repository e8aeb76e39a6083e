"""Clients from before Kafka 0.11: message sets in, message sets out, whatever the log keeps them as."""

import kafka
import pytest

from trilogue.broker.network.tests.test_transports import fetch_request, make_topic, values_in
from trilogue.broker.tests.running import Raw, running
from trilogue.wire import legacy
from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.compression import Codec
from trilogue.wire.errors import ErrorCode
from trilogue.wire.records import Record, batches, build

STAMP = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker():
    with running() as broker:
        yield broker


def produce(raw, topic, records, version):
    partition = ProduceRequest.Topic.Partition(index=0, records=bytes(records))
    topics = [ProduceRequest.Topic(name=topic, partition_data=[partition])]
    answer = raw.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), version, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def told(response):
    """Offset, key and value of the messages in a fetch of the old formats."""
    (partition,) = response.responses[0].partitions
    return [
        (each.offset, each.key and bytes(each.key), each.value and bytes(each.value))
        for each in legacy.records(partition.records, partial_ok=True)
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_what_an_old_producer_sends_is_kept_as_a_batch(broker, version, magic, codec):
    sent = [Record(n, STAMP, b"k%d" % n, None if n == 1 else b"v%d" % n) for n in range(3)]
    name = f"old-{version}-{codec.name.lower()}"
    with Raw(broker) as raw:
        make_topic(raw, name)
        answer = produce(raw, name, legacy.build(sent, magic, codec=codec), version)
        new = raw.ask(fetch_request(name), 11, FetchResponse)
        old = {each: raw.ask(fetch_request(name), each, FetchResponse) for each in (0, 1, 2, 3)}

    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    kept = [record for batch in batches(new.responses[0].partitions[0].records) for record in batch.records()]
    assert [(r.key and bytes(r.key), r.value and bytes(r.value)) for r in kept] == [(r.key, r.value) for r in sent]
    assert all(record.timestamp == (STAMP if magic else -1) for record in kept)
    for response in old.values():
        assert told(response) == [(r.offset, r.key, r.value) for r in sent]


def test_what_a_new_producer_sends_is_read_by_an_old_consumer(broker):
    sent = [Record(n, STAMP + n, b"k", b"v%d" % n, [("header", b"lost")]) for n in range(5)]
    with Raw(broker) as raw:
        make_topic(raw, "new")
        produce(raw, "new", build(sent, codec=Codec.LZ4), 9)
        produce(raw, "new", build([Record(0, STAMP, None, b"next")]), 9)

        assert told(raw.ask(fetch_request("new"), 3, FetchResponse)) == [
            *((n, b"k", b"v%d" % n) for n in range(5)),
            (5, None, b"next"),
        ]
        assert [offset for offset, _, _ in told(raw.ask(fetch_request("new", offset=5), 0, FetchResponse))] == [5]


def test_zstd_cannot_be_told_to_an_old_consumer(broker):
    with Raw(broker) as raw:
        make_topic(raw, "zstd")
        produce(raw, "zstd", build([Record(0, STAMP, None, b"x" * 100)], codec=Codec.ZSTD), 9)
        old = raw.ask(fetch_request("zstd"), 3, FetchResponse)
        new = raw.ask(fetch_request("zstd"), 11, FetchResponse)

    assert old.responses[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert values_in(new) == [b"x" * 100]


def test_a_damaged_message_set_is_refused(broker):
    damaged = bytearray(legacy.build([Record(0, STAMP, None, b"v")], 1))
    damaged[-1] ^= 1
    with Raw(broker) as raw:
        make_topic(raw, "damaged")
        answer = produce(raw, "damaged", damaged, 2)

    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


def test_the_oldest_way_to_ask_for_offsets(broker):
    Partition = ListOffsetsRequest.Topic.Partition
    with Raw(broker) as raw:
        make_topic(raw, "offsets")
        produce(raw, "offsets", build([Record(n, STAMP, None, b"v") for n in range(4)]), 9)
        asked = [Partition(partition_index=0, timestamp=-1, max_num_offsets=5)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name="offsets", partitions=asked)])
        answer = raw.ask(request, 0, ListOffsetsResponse)

    assert answer.topics[0].partitions[0].old_style_offsets == [4, 0]


@pytest.mark.parametrize("version", [(0, 9), (0, 10, 0), (0, 10, 2), (0, 11)], ids=str)
def test_kafka_python_told_to_speak_as_of_old(broker, version):
    name = f"told-{'-'.join(map(str, version))}"
    where = f"127.0.0.1:{broker.listeners[0].port}"
    with Raw(broker) as raw:
        make_topic(raw, name)
    producer = kafka.KafkaProducer(bootstrap_servers=where, api_version=version)
    offsets = [producer.send(name, b"%d" % n, b"k", partition=0).get(10).offset for n in range(3)]
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=where, api_version=version, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    consumer.assign([kafka.TopicPartition(name, 0)])
    found = [(each.offset, each.value) for _, each in zip(range(3), consumer, strict=False)]
    consumer.close()

    assert offsets == [0, 1, 2]
    assert found == [(0, b"0"), (1, b"1"), (2, b"2")]
