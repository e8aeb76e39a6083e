"""The generated codecs say exactly what the constructs say, on every message in every version."""

import pytest
from hypothesis import HealthCheck, given, settings

from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.catalog import everything
from trilogue.wire.codec import build, interleave, parse
from trilogue.wire.compile import codec
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.tests.definitions import each
from trilogue.wire.tests.values import values
from trilogue.wire.trees import tree

MESSAGES = everything()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda it: it.__name__)
def test_generated_code_agrees_with_construct_in_every_version(message):
    for version in each(message.versions):
        agree(message, version, examples=3)


@pytest.mark.slow
@pytest.mark.parametrize("message", MESSAGES, ids=lambda it: it.__name__)
def test_generated_code_agrees_with_construct_on_many_values(message):
    for version in each(message.versions):
        agree(message, version, examples=40)


def agree(message, version, examples):
    reference, fast = tree(message, version), codec(message, version)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(it=values(reference))
    def both_ways(it):
        wire = reference.build(it)
        out, parts = bytearray(), []
        fast.encode(it, out, parts)

        assert b"".join(interleave(out, parts)) == wire
        assert fast.decode(memoryview(wire), 0) == (reference.parse(wire), len(wire)) == (it, len(wire))

    both_ways()


def test_records_stay_views_of_the_buffer_and_go_out_by_reference_when_large():
    records = bytes(5000)
    wire = build(produce(records), 9)
    buffer = bytearray(wire)

    parsed = parse(ProduceRequest, 9, buffer)
    view = parsed.topic_data[0].partition_data[0].records
    out, parts = bytearray(), []
    codec(ProduceRequest, 9).encode(parsed, out, parts)

    assert view.obj is buffer
    assert [part for _, part in parts] == [view]
    assert len(out) < 100


def test_what_is_not_a_buffer_is_left_to_the_sender():
    slice_of_a_file = FileSlice()
    partition = FetchResponse.Topic.Partition(partition_index=0, high_watermark=7, records=slice_of_a_file)
    response = FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=[partition])])
    out, parts = bytearray(), []

    codec(FetchResponse, 12).encode(response, out, parts)
    ((at, part),) = parts

    assert part is slice_of_a_file
    assert bytes(out[:at] + bytes(3) + out[at:]) == build(with_records(response, bytes(3)), 12)


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (0, "ProduceRequest v9: transactional_id: 1 bytes needed, 0 left"),
        (1, "ProduceRequest v9: acks: 2 bytes needed, 0 left"),
        (5, "ProduceRequest v9: timeout_ms: 4 bytes needed, 2 left"),
        (9, "ProduceRequest v9: topic_data: 1 elements declared, 1 bytes left"),
        (15, "ProduceRequest v9: topic_data[0].partition_data: 1 elements declared, 2 bytes left"),
        (27, "ProduceRequest v9: topic_data[0].partition_data[0].records: 17 bytes declared, 9 left"),
        (35, "ProduceRequest v9: topic_data[0].partition_data[0].tagged fields: 1 bytes needed, 0 left"),
    ],
)
def test_a_message_that_ends_early_is_refused_with_the_path_of_what_is_missing(cut, said):
    wire = build(produce(bytes(17)), 9)

    with pytest.raises(MalformedMessage) as caught:
        parse(ProduceRequest, 9, wire[:cut])

    assert str(caught.value) == said


def test_the_path_counts_the_elements():
    topic = ProduceRequest.Topic
    partitions = [topic.Partition(index=i, records=bytes(20)) for i in range(3)]
    wire = build(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic(name="a", partition_data=partitions)] * 4), 9)
    last_partition = 4 + 1 + 20 + 1 + 2  # its index, the size of its records, those, and what ends everything

    with pytest.raises(MalformedMessage) as caught:
        parse(ProduceRequest, 9, wire[: -last_partition + 2])

    assert caught.value.path == "ProduceRequest v9: topic_data[3].partition_data[2].index"


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (b"\xff\xff\xff\xff\xff\x01", "MetadataRequest v9: topics: varint is longer than 5 bytes"),
        (b"\x80\x80", "MetadataRequest v9: topics: the bytes end inside of a varint"),
        (b"\x81\x80\x40", "MetadataRequest v9: topics: 1048576 elements declared; the limit is 1000000"),
        (b"\x09\x00", "MetadataRequest v9: topics: 8 elements declared, 1 bytes left"),
        (b"\x02\x00\x00", "MetadataRequest v9: topics[0].name: size -1 is not allowed here"),
        (
            b"\x02\x81\x80\x02" + bytes(32768),
            "MetadataRequest v9: topics[0].name: string of 32768 bytes; the limit is 32767",
        ),
        (b"\x01\x00\x00\x00\x91\x4e", "MetadataRequest v9: tagged fields: 10001 tagged fields; the limit is 10000"),
        (b"\x01\x00\x00\x00\x02\x05\x00\x05\x00", "MetadataRequest v9: tagged fields: tag 5 after tag 5"),
        (b"\x01\x00\x00\x00\x02\x05\x00\x04\x00", "MetadataRequest v9: tagged fields: tag 4 after tag 5"),
        (b"\x01\x00\x00\x00\x01\x05\x09", "MetadataRequest v9: tagged fields: tag 5: 9 bytes declared, 0 left"),
        (b"\x01\x00\x00\x00\x00\x00", "MetadataRequest v9: 1 bytes too many"),
    ],
)
def test_what_a_client_may_not_say(wire, said):
    with pytest.raises(MalformedMessage) as caught:
        parse(MetadataRequest, 9, wire)

    assert str(caught.value) == said


def test_unknown_tags_are_skipped():
    known = parse(MetadataRequest, 9, b"\x01\x01\x00\x00\x00")

    assert parse(MetadataRequest, 9, b"\x01\x01\x00\x00\x02\x07\x02hi\x63\x00") == known


def test_text_that_is_not_utf8_is_read_as_java_reads_it():
    parsed = parse(MetadataRequest, 1, b"\x00\x00\x00\x01\x00\x02\xc3\x28")

    assert parsed.topics == [MetadataRequest.Topic(name="\ufffd(")]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"name": None}, "topics[1].name: 'NoneType' object has no attribute 'encode'"),
        ({"name": "x" * 40_000}, "topics[1].name: string of 40000 bytes; the limit is 32767"),
        (
            {"topic_id": b"short"},
            "topics[1].topic_id or topics[1].is_internal or topics[1].partitions: an id of 5 bytes",
        ),
        ({"partitions": None}, "topics[1].partitions: object of type 'NoneType' has no len()"),
    ],
)
def test_what_cannot_be_built_says_where_it_is_wrong(broken, said):
    topics = [MetadataResponse.Topic(name="fine", partitions=[]), MetadataResponse.Topic(**{"name": "x", **broken})]

    with pytest.raises(ValueError, match="MetadataResponse v11") as caught:
        build(MetadataResponse(brokers=[], topics=topics), 11)

    assert said in str(caught.value)


class FileSlice:
    def __len__(self):
        return 3


def produce(records):
    partition = ProduceRequest.Topic.Partition(index=0, records=records)
    topic = ProduceRequest.Topic(name="abc", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=100, topic_data=[topic])


def with_records(response, records):
    response.responses[0].partitions[0].records = records
    return response
