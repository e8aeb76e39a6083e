"""Frames and headers, byte by byte."""

import pytest

from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.frame import (
    Frames,
    Header,
    frame_end,
    read_header,
    read_request,
    read_response,
    write_request,
    write_response,
)

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=7, member_id="m")


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("client_id", ["me", "", None])
def test_a_request_comes_out_as_it_went_in(version, client_id):
    (frame,) = Frames(100).feed(b"".join(write_request(HEARTBEAT, version, 42, client_id)))

    header = read_header(memoryview(frame))

    assert header[:4] == (12, version, 42, client_id)
    assert read_request(memoryview(frame), header, HeartbeatRequest) == HEARTBEAT


def test_the_two_generations_of_request_headers():
    plain, flexible = (b"".join(write_request(HEARTBEAT, version, 1, "c")) for version in (3, 4))

    assert plain == bytes.fromhex("00000017 000c 0003 00000001 0001 63  0001 67 00000007 0001 6d ffff")
    assert flexible == bytes.fromhex("00000016 000c 0004 00000001 0001 63 00  02 67 00000007 02 6d 00 00")


def test_the_two_generations_of_response_headers():
    answer = HeartbeatResponse(throttle_time_ms=0, error_code=27)

    assert b"".join(write_response(answer, 3, 9)) == bytes.fromhex("0000000a 00000009 00000000 001b")
    assert b"".join(write_response(answer, 4, 9)) == bytes.fromhex("0000000c 00000009 00 00000000 001b 00")


def test_api_versions_is_answered_in_the_oldest_header():
    """Its reader may not know ours."""
    (frame,) = Frames(100).feed(b"".join(write_response(ApiVersionsResponse(api_keys=[]), 3, 5)))

    assert frame == bytes.fromhex("00000005 0000 01 00000000 00")
    assert read_response(memoryview(frame), ApiVersionsResponse, 3) == (5, ApiVersionsResponse(api_keys=[]))


def test_tags_in_a_header_are_for_others():
    frame = memoryview(bytes.fromhex("0012 0003 00000001 ffff 01 05 02 6869  02 61 02 62 00"))

    request = read_request(frame, read_header(frame), ApiVersionsRequest)

    assert request == ApiVersionsRequest(client_software_name="a", client_software_version="b")


def test_bytes_behind_a_request_are_not_looked_at():
    (frame,) = Frames(100).feed(b"".join(write_request(HEARTBEAT, 4, 1, None)))
    longer = memoryview(frame + b"more")

    assert read_request(longer, read_header(longer), HeartbeatRequest) == HEARTBEAT


def test_the_parts_of_a_frame_have_the_size_that_it_declares():
    slices = [bytes(range(100)) * 100, FileSlice(7), FileSlice(0)]
    partitions = [
        FetchResponse.Topic.Partition(partition_index=i, high_watermark=0, records=records)
        for i, records in enumerate(slices)
    ]
    response = FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=partitions)])

    parts = write_response(response, 12, 1)

    assert [part for part in parts if isinstance(part, FileSlice)] == slices[1:]
    assert int.from_bytes(bytes(parts[0][:4]), "big") == sum(map(len, parts)) - 4


def test_a_stream_is_cut_into_frames_wherever_it_is_broken():
    stream = b"\x00\x00\x00\x03abc\x00\x00\x00\x00\x00\x00\x00\x01z"

    for at in range(len(stream)):
        frames = Frames(10)
        assert [*frames.feed(stream[:at]), *frames.feed(stream[at:])] == [b"abc", b"", b"z"]
    one_by_one = Frames(10)
    assert [it for byte in stream for it in one_by_one.feed(bytes([byte]))] == [b"abc", b"", b"z"]


def test_a_frame_of_the_largest_size_is_taken_and_one_byte_more_refused_at_once():
    assert list(Frames(3).feed(b"\x00\x00\x00\x03abc")) == [b"abc"]
    with pytest.raises(MalformedMessage, match="frame: 4 bytes; the limit is 3"):
        list(Frames(3).feed(b"\x00\x00\x00\x04"))


def test_the_end_of_a_frame_is_known_when_all_of_it_is_there():
    buffer = memoryview(b"..\x00\x00\x00\x02ab")

    assert frame_end(buffer, 2, 10) == 8
    assert frame_end(buffer[:7], 2, 10) is None
    assert frame_end(buffer[:5], 2, 10) is None


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"GET / HTTP/1.1\r\n", "the client speaks HTTP"),
        (b"POST /x", "the client speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "the client speaks TLS"),
        (b"\xff\xff\xff\xff", "frame: -1 bytes"),
    ],
)
def test_who_does_not_speak_kafka_is_named(first, said):
    with pytest.raises(MalformedMessage, match=said):
        frame_end(memoryview(first), 0, 100 << 20)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (b"", "request header: 10 bytes needed, 0 there"),
        (bytes(9), "request header: 10 bytes needed, 9 there"),
        (bytes(8) + b"\x00\x05abcd", "request header: client_id: 5 bytes declared, 4 left"),
        (bytes(8) + b"\xff\xfe", "request header: client_id: size -2 is not allowed here"),
    ],
)
def test_a_broken_header_is_refused(frame, said):
    with pytest.raises(MalformedMessage) as caught:
        read_header(memoryview(frame))

    assert str(caught.value) == said


def test_a_header_without_its_tags_is_refused():
    frame = memoryview(bytes.fromhex("000c 0004 00000001 ffff"))

    with pytest.raises(MalformedMessage, match="request header: tagged fields: 1 bytes needed, 0 left"):
        read_request(frame, Header(12, 4, 1, None, 10), HeartbeatRequest)


class FileSlice:
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size
