"""A producer that has formed a template hears what one hears that has just come."""

import contextlib
import socket

import pytest

from trilogue.broker.network.tests.test_transports import make_topic
from trilogue.broker.tests.running import Raw, running
from trilogue.wire import produce_templates
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import read_response, write_request
from trilogue.wire.records import Record, batches, build
from trilogue.wire.schema import ZERO_UUID

VERSIONS = [9, 12, 13]
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker():
    with running(message_max_bytes="100000") as broker:
        yield broker


@pytest.fixture
def producing(broker):
    """Makes producers."""
    with contextlib.ExitStack() as stack:
        yield lambda *args: Producer(stack.enter_context(Raw(broker)), *args)


@pytest.fixture
def recalled(monkeypatch):
    """How many requests were recalled: a template that nobody follows would pass every test here."""
    counted = []
    recall = produce_templates.ProduceTemplates.recall

    def counting(self, frame):
        found = recall(self, frame)
        if found is not None:
            counted.append(found[1])
        return found

    monkeypatch.setattr(produce_templates.ProduceTemplates, "recall", counting)
    return counted


def batch(value=b"value", **given):
    return build([Record(0, NOW_MS, b"key", value)], **given)


def topic_id(raw, name):
    asked = MetadataRequest(topics=[MetadataRequest.Topic(name=name)])
    return raw.ask(asked, 12, MetadataResponse).topics[0].topic_id


class Producer:
    """Always the same topic and partition, on a connection of its own."""

    def __init__(self, raw, topic, version, acks=1):
        self.raw, self.version, self.acks = raw, version, acks
        self.topic = topic
        self.id = topic_id(self.raw, topic) if version >= 13 else ZERO_UUID

    def frame(self, records, correlation_id=7):
        data = ProduceRequest.Topic.Partition(index=0, records=records)
        topic = ProduceRequest.Topic(name=self.topic, topic_id=self.id, partition_data=[data])
        request = ProduceRequest(acks=self.acks, timeout_ms=5000, topic_data=[topic])
        return b"".join(write_request(request, self.version, correlation_id, "raw"))

    def send(self, records, correlation_id=7):
        self.raw.send(self.frame(records, correlation_id))
        frame = self.raw.receive()
        return read_response(memoryview(frame), ProduceResponse, self.version)[1] if frame else None


def values(broker, topic):
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchRequest.Topic(topic=topic, partitions=[part])],
        forgotten_topics_data=[],
    )
    with Raw(broker) as raw:
        found = raw.ask(asked, 11, FetchResponse).responses[0].partitions[0].records
    return [record.value for each in batches(memoryview(found)) for record in each.records()]


@pytest.mark.parametrize("version", VERSIONS)
def test_records_arrive_in_order_and_are_answered_each(broker, producing, recalled, version):
    topic = f"plain-{version}"
    with Raw(broker) as raw:
        make_topic(raw, topic)
    producer = producing(topic, version)
    sent = [b"%d" % number * (1 + number * 50) for number in range(40)]  # sizes of one, two and three bytes

    for number, value in enumerate(sent):
        part = producer.send(batch(value), number).responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (ErrorCode.NONE, number)

    assert values(broker, topic) == sent
    assert recalled == list(range(1, len(sent)))


def test_requests_in_one_piece_and_in_many_are_answered_in_order(broker, producing, recalled):
    with Raw(broker) as raw:
        make_topic(raw, "pieces")
    producer = producing("pieces", 9)
    sent = [bytes([number]) * 5000 for number in range(12)]
    data = b"".join(producer.frame(batch(value), number) for number, value in enumerate(sent))
    producer.raw.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    for at in range(0, len(data), 1777):
        producer.raw.send(data[at : at + 1777])
    answers = [read_response(memoryview(producer.raw.receive()), ProduceResponse, 9) for _ in sent]

    assert [number for number, _ in answers] == list(range(len(sent)))
    assert [each.responses[0].partition_responses[0].base_offset for _, each in answers] == list(range(len(sent)))
    assert values(broker, "pieces") == sent
    assert len(recalled) == len(sent) - 1


def flipped(records):
    return records[:-1] + bytes([records[-1] ^ 1])


BAD = {
    "a wrong checksum": flipped(batch()),
    "too large": batch(bytes(200_000)),
    "two batches": batch() + batch(),
    "not a batch": b"x" * 100,
    "one byte": b"x",
    "an old format": batch()[:16] + b"\1" + batch()[17:],
    "a transaction without an id": batch(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True),
    "a sequence with a gap": batch(producer_id=9, producer_epoch=0, base_sequence=77),
    "an epoch of the past": batch(producer_id=9, producer_epoch=0, base_sequence=1),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("bad", BAD)
def test_a_refusal_is_the_same_with_and_without_a_habit(broker, producing, recalled, version, bad):
    topic = f"bad-{version}-{list(BAD).index(bad)}"
    with Raw(broker) as raw:
        make_topic(raw, topic)
    newer = 1 if bad == "an epoch of the past" else 0
    begin = batch(producer_id=9, producer_epoch=newer, base_sequence=0)
    used, new = producing(topic, version), producing(topic, version)
    assert used.send(begin).responses[0].partition_responses[0].error_code == ErrorCode.NONE
    before = len(recalled)

    with_habit, without = used.send(bytes(BAD[bad])), new.send(bytes(BAD[bad]))

    assert len(recalled) == before + 1
    assert with_habit == without
    assert with_habit.responses[0].partition_responses[0].error_code != ErrorCode.NONE
    good = used.send(batch()).responses[0].partition_responses[0]
    assert (good.error_code, good.base_offset) == (ErrorCode.NONE, 1), "nothing of what was refused is in the log"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_gone_is_gone(broker, producing, recalled, version):
    topic = f"gone-{version}"
    with Raw(broker) as raw:
        make_topic(raw, topic)
        used, new = producing(topic, version), producing(topic, version)
        used.send(batch())
        raw.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 4, DeleteTopicsResponse)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    answer = used.send(batch())

    assert answer == new.send(batch())
    assert answer.responses[0].partition_responses[0].error_code == unknown
    with Raw(broker) as raw:
        make_topic(raw, topic)
    again = used.send(batch()).responses[0].partition_responses[0].error_code
    assert again == (unknown if version >= 13 else ErrorCode.NONE), "by name it is the new one, by its id it is none"
    assert len(recalled) == 2


def test_without_acknowledgement_nothing_is_said_until_something_is_wrong(broker, producing, recalled):
    with Raw(broker) as raw:
        make_topic(raw, "silent")
    producer = producing("silent", 9, 0)
    for number in range(3):
        producer.raw.send(producer.frame(batch(b"%d" % number)))

    assert producer.send(flipped(batch())) is None, "hung up on"
    assert values(broker, "silent") == [b"0", b"1", b"2"]
    assert len(recalled) == 3


@pytest.mark.parametrize("acks", [1, -1])
def test_a_topic_that_is_synced_with_every_record_is_waited_for(broker, producing, recalled, acks):
    topic = f"synced-{acks}"
    with Raw(broker) as raw:
        make_topic(raw, topic, flush_messages="1")
    producer = producing(topic, 9, acks)

    offsets = [producer.send(batch()).responses[0].partition_responses[0].base_offset for _ in range(5)]

    assert offsets == list(range(5))
    assert len(recalled) == 4


def test_stamped_by_the_broker(broker, producing, recalled):
    with Raw(broker) as raw:
        make_topic(raw, "stamped", message_timestamp_type="LogAppendTime")
    producer = producing("stamped", 9)

    times = [producer.send(batch()).responses[0].partition_responses[0].log_append_time_ms for _ in range(3)]

    assert min(times) > NOW_MS
    assert len(recalled) == 2
