"""Bad input to a running broker: refused with Kafka's codes or hung up on, nothing written, neighbours unharmed."""

import logging
import random
import zlib

import pytest

from trilogue.broker.network.tests.test_transports import HELLO, fetch_request, make_topic, produce_request, values_in
from trilogue.broker.requests.registry import APIS
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.api_versions import ApiVersionsResponse
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.compression import Codec
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import write_request
from trilogue.wire.records import Record, build, checksum
from trilogue.wire.tests.definitions import each
from trilogue.wire.tests.test_hostile import mutated
from trilogue.wire.tests.values import some_value
from trilogue.wire.trees import tree


@pytest.fixture(scope="module")
def broker():
    with running() as broker:
        with Raw(broker) as raw:
            make_topic(raw, "t")
            make_topic(raw, "compacted", cleanup_policy="compact")
            make_topic(raw, "small", max_message_bytes="2000")
        yield broker


# -- B4: what the schemas allow, and what becomes of it when bytes are changed -----------------------


def bombard(broker, cases, seed):
    """Requests made from the schemas, half of them damaged; whoever is hung up on comes again."""
    chance = random.Random(seed)
    pairs = [(api.request, version) for api in APIS.values() for version in each(api.versions)]
    raw = Raw(broker)
    for number in range(cases):
        message, version = chance.choice(pairs)
        con = tree(message, version)
        head = message.api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + number.to_bytes(4, "big") + b"\xff\xff"
        body = (b"\x00" if version in message.flexible else b"") + con.build(some_value(con, chance))
        frame = head + (mutated(body, chance) if chance.random() < 0.5 else body)
        raw.sock.settimeout(0.05)
        try:
            raw.send(len(frame).to_bytes(4, "big") + frame)
            alive = bool(raw.receive())
        except (TimeoutError, OSError):
            alive = False  # hung up on, has to wait, or is not to be answered
        if not alive:
            raw.close()
            raw = Raw(broker)
    raw.close()


def test_requests_made_from_the_schemas_meet_no_bug(caplog):
    with running() as victim, caplog.at_level(logging.ERROR):
        bombard(victim, 1_500, seed=1)
        assert [record.getMessage() + str(record.exc_text) for record in caplog.records] == []
        with Raw(victim) as raw:
            assert raw.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE


@pytest.mark.slow
def test_very_many_requests_made_from_the_schemas_meet_no_bug(caplog):
    with running() as victim, caplog.at_level(logging.ERROR):
        bombard(victim, 50_000, seed=2)
        assert [record.getMessage() + str(record.exc_text) for record in caplog.records] == []
        with Raw(victim) as raw:
            assert raw.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE


# -- B6: bad batches -------------------------------------------------------------------------------


def produce(raw, records, topic="t", version=9):
    partition = ProduceRequest.Topic.Partition(index=0, records=bytes(records))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[ProduceRequest.Topic(name=topic, partition_data=[partition])]
    )
    answer = raw.ask(request, version, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def changed(batch, at, value):
    copy = bytearray(batch)
    copy[at : at + len(value)] = value
    return bytes(copy)


GOOD = bytes(build([Record(0, 1_700_000_000_000, b"k", b"v")]))


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (changed(GOOD, 17, b"\x00\x00\x00\x00"), ErrorCode.CORRUPT_MESSAGE),  # checksum
        (changed(GOOD, 16, b"\x01"), ErrorCode.INVALID_RECORD),  # magic
        (changed(GOOD, 16, b"\x07"), ErrorCode.CORRUPT_MESSAGE),
        (changed(GOOD, 8, b"\xff\xff\xff\xff"), ErrorCode.CORRUPT_MESSAGE),  # length
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(build([Record(0, 1, b"k", b"v")], control=True)), ErrorCode.INVALID_RECORD),
        (bytes(build([Record(0, 4_000_000_000_000, None, b"late")])), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=["crc", "magic 1", "magic 7", "length", "two", "none", "control", "from the future"],
)
def test_a_bad_batch_gets_kafkas_code_and_leaves_nothing(broker, records, code):
    with Raw(broker) as raw:
        before = raw.ask(fetch_request(), 11, FetchResponse)
        answer = produce(raw, records)
        after = raw.ask(fetch_request(), 11, FetchResponse)

    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert values_in(before) == values_in(after)


def test_a_compacted_topic_wants_keys_and_says_which_records_have_none(broker):
    with Raw(broker) as raw:
        answer = produce(raw, build([Record(0, 1, b"k", b"v"), Record(1, 1, None, b"v")]), "compacted")

    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1]


# -- B7: sizes -------------------------------------------------------------------------------------


def test_a_batch_larger_than_the_topic_allows_is_refused(broker):
    with Raw(broker) as raw:
        answer = produce(raw, build([Record(0, 1, None, bytes(2000))]), "small")
        fine = produce(raw, build([Record(0, 1, None, bytes(1900))]), "small")

    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert fine.error_code == ErrorCode.NONE


def test_metadata_of_a_hundred_thousand_topics_that_are_not_there(broker):
    topics = [MetadataRequest.Topic(name=f"nothing-{i}") for i in range(100_000)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    with Raw(broker) as raw:
        answer = raw.ask(request, 9, MetadataResponse)

    assert {each.error_code for each in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(answer.topics) == 100_000


@pytest.mark.slow
def test_ten_thousand_partitions_are_made_and_one_more_are_not():
    with running() as victim, Raw(victim) as raw:
        raw.sock.settimeout(60)
        make_topic(raw, "many", partitions=10_000)
        topic = CreateTopicsRequest.Topic(
            name="more", num_partitions=10_001, replication_factor=1, assignments=[], configs=[]
        )
        refused = raw.ask(CreateTopicsRequest(topics=[topic]), 5, CreateTopicsResponse)
        answer = raw.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="many")]), 9, MetadataResponse)

    assert [each.error_code for each in refused.topics] == [ErrorCode.POLICY_VIOLATION]
    assert {each.leader_id for each in answer.topics[0].partitions} == {1}


# -- B8: bombs -------------------------------------------------------------------------------------


def test_a_bomb_is_refused_before_it_is_inflated(broker):
    """A quarter of a gigabyte of zeros: more than any honest batch holds.  Java's producer would send it in parts."""
    bomb = build([Record(0, 1_700_000_000_000, None, bytes(256 << 20))], codec=Codec.GZIP)
    with Raw(broker) as raw:
        answer = produce(raw, bomb)

    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.slow
def test_a_bomb_for_a_topic_whose_keys_must_be_read_is_refused(broker):
    """Here the records have to be looked at; 768 MiB are beyond the cap, whose keeping wire's own tests show."""
    packer = zlib.compressobj(9, wbits=31)
    payload = b"".join(packer.compress(bytes(1 << 24)) for _ in range(48)) + packer.flush()
    batch = bytearray(build([Record(0, 1_700_000_000_000, b"k", b"v")], codec=Codec.GZIP)[:61]) + payload
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = checksum(memoryview(batch)[21:]).to_bytes(4, "big")
    with Raw(broker) as raw:
        answer = produce(raw, batch, "compacted")
        alive = raw.ask(HELLO, 3, ApiVersionsResponse)

    assert answer.error_code != ErrorCode.NONE
    assert alive.error_code == ErrorCode.NONE


# -- B12: names ------------------------------------------------------------------------------------

BAD_NAMES = ["../x", "a/b", "", ".", "..", "a\x00b", "x" * 250, "new\nline", "\x1b[2J", "caf\u00e9", "a b"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_name_that_cannot_be_a_topic_is_refused_everywhere(broker, name, tmp_path):
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    with Raw(broker) as raw:
        created = raw.ask(CreateTopicsRequest(topics=[topic]), 5, CreateTopicsResponse)
        described = raw.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=name)]), 9, MetadataResponse)
        wrote = produce(raw, GOOD, name)

    assert [each.error_code for each in created.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert [each.error_code for each in described.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert wrote.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_names_that_metrics_would_confuse_do_not_live_together(broker):
    with Raw(broker) as raw:
        make_topic(raw, "a.b")
        topic = CreateTopicsRequest.Topic(
            name="a_b", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        answer = raw.ask(CreateTopicsRequest(topics=[topic]), 5, CreateTopicsResponse)

    assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION]


# -- B13: secrets ----------------------------------------------------------------------------------


def test_secrets_are_never_told(caplog):
    with caplog.at_level(logging.DEBUG), running(trilogue_zookeeper_digest="me:hunter2") as victim, Raw(victim) as raw:
        resource_ = DescribeConfigsRequest.Resource(resource_type=4, resource_name="1", configuration_keys=None)
        answer = raw.ask(DescribeConfigsRequest(resources=[resource_]), 4, DescribeConfigsResponse)
        told = {entry.name: (entry.value, entry.is_sensitive) for entry in answer.results[0].configs}

    assert told["trilogue.zookeeper.digest"] == (None, True)
    assert "hunter2" not in caplog.text


def test_a_bug_of_ours_is_logged_and_closes_only_the_connection_that_met_it(broker, monkeypatch, caplog):
    api = APIS[3]

    def broken(*_):
        raise ZeroDivisionError("a bug")

    with Raw(broker) as unlucky, Raw(broker) as other:
        monkeypatch.setitem(APIS, 3, api._replace(handler=broken))
        with caplog.at_level(logging.ERROR):
            unlucky.send(b"".join(write_request(MetadataRequest(topics=[]), 9, 1, None)))
            assert unlucky.receive() == b""
        assert other.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
        answer = other.ask(produce_request(b"fine"), 9, ProduceResponse)

    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert "a bug of ours" in caplog.text
    assert "ZeroDivisionError" in caplog.text
