"""Coordinators' topics that hold what they should not: what can be read is loaded, and the broker serves."""

import logging
import struct

import pytest

from trilogue.broker.network.tests.test_transports import make_topic
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.codec import build as build_message
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import read_response, write_request
from trilogue.wire.internal.transactions import TransactionLogKey, TransactionLogValue
from trilogue.wire.records import Record, build

SETTINGS = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
GROUPS = [f"group-{number:02}" for number in range(60)]


def commit(raw, group, offset):
    partition = OffsetCommitRequest.Topic.Partition(
        partition_index=0, committed_offset=offset, committed_metadata="x" * 200
    )
    topic = OffsetCommitRequest.Topic(name="t", partitions=[partition])
    answer = raw.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 5, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def committed(raw, group):
    topic = OffsetFetchRequest.Topic(name="t", partition_indexes=[0])
    answer = raw.ask(OffsetFetchRequest(group_id=group, topics=[topic]), 5, OffsetFetchResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer.topics[0].partitions[0].committed_offset


def init(raw, name):
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    return raw.ask(request, 4, InitProducerIdResponse)


@pytest.mark.parametrize(
    ("at", "change"),
    [(8, b"\x00\x00\xff\xff"), (8, b"\x00\x00\x00\x01"), (16, b"\x07"), (70, b"8 bytes!"), (17, b"\xff\xff")],
    ids=["too long", "too short", "magic", "body", "checksum"],
)
def test_damage_costs_what_is_damaged(tmp_path, caplog, at, change):
    with running(log_dirs=str(tmp_path), **SETTINGS) as server, Raw(server) as raw:
        make_topic(raw, "t")
        raw.ask(FindCoordinatorRequest(key="g", key_type=0), 3, FindCoordinatorResponse)
        for number, group in enumerate(GROUPS):
            commit(raw, group, number)
    file = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    data[at : at + len(change)] = change  # of the first batch
    file.write_bytes(data)

    with caplog.at_level(logging.ERROR), running(log_dirs=str(tmp_path), **SETTINGS) as server, Raw(server) as raw:
        found = [committed(raw, group) for group in GROUPS]
        commit(raw, GROUPS[0], 1000)
        assert committed(raw, GROUPS[0]) == 1000

    assert found[0] == -1
    assert found[40:] == list(range(40, 60)), "what lies behind the next entry of the index is loaded"
    assert any("damaged, and loaded without" in record.getMessage() for record in caplog.records)


def forged(key: bytes, value: bytes) -> ProduceRequest:
    partition = ProduceRequest.Topic.Partition(index=0, records=build([Record(0, 1_700_000_000_000, key, value)]))
    topic = ProduceRequest.Topic(name="__transaction_state", partition_data=[partition])
    return ProduceRequest(acks=1, timeout_ms=5000, topic_data=[topic])


NUMBER = struct.Struct(">h")
KEY = NUMBER.pack(0) + build_message(TransactionLogKey(transactional_id="forged"), 0)
ODD_STATE = NUMBER.pack(0) + build_message(
    TransactionLogValue(
        producer_id=1,
        producer_epoch=1,
        transaction_timeout_ms=1,
        transaction_status=99,
        transaction_partitions=[],
        transaction_last_update_timestamp_ms=1,
        transaction_start_timestamp_ms=1,
    ),
    0,
)


@pytest.mark.parametrize(
    ("key", "value"), [(KEY, ODD_STATE), (KEY, b"\x00\x00junk"), (b"\x00\x00\x7f", b"x"), (b"", b"x"), (KEY, b"")]
)
def test_records_that_a_client_has_forged_are_passed_over(tmp_path, caplog, key, value):
    with running(log_dirs=str(tmp_path), **SETTINGS) as server, Raw(server) as raw:
        raw.ask(FindCoordinatorRequest(key="shop", key_type=1), 3, FindCoordinatorResponse)
        before = init(raw, "shop")
        raw.send(b"".join(write_request(forged(key, value), 9, 1, "__admin_client")))
        answer = read_response(memoryview(raw.receive()), ProduceResponse, 9)[1]
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    with caplog.at_level(logging.ERROR), running(log_dirs=str(tmp_path), **SETTINGS) as server, Raw(server) as raw:
        after = init(raw, "shop")

    assert (after.error_code, after.producer_id, after.producer_epoch) == (
        ErrorCode.NONE,
        before.producer_id,
        before.producer_epoch + 1,
    )
    assert any("is passed over" in record.getMessage() for record in caplog.records)
