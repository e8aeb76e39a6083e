"""What requests are about, and how they are refused: for every API that we answer, in every version."""

from typing import ClassVar

import pytest

from trilogue.broker.requests import registry
from trilogue.testing.faults.refusing import divide, join
from trilogue.testing.faults.shapes import Subject, selectors, shape, subjects
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest
from trilogue.wire.apis.fetch import FetchRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.apis.metadata import MetadataRequest
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.codec import build, parse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.schema import Kind

registry.load()
EVERY = [(api.request, version) for api in registry.APIS.values() for version in api.numbers]
IDS = {bytes([number] * 16): name for number, name in enumerate(["orders", "users"], 1)}
NOWHERE = {
    *((name, version) for name in ("AlterReplicaLogDirs", "DescribeLogDirs") for version in (0, 1, 2)),
    ("AlterUserScramCredentials", 0),
}
"""They answer by directory or by user, and have no code for all of it in these versions."""


def a_struct(kind, version, depth=0):
    """With one element in every list and something in every field."""
    made = kind()
    for each in kind.fields.values():
        if version not in each.rule.versions:
            continue
        if each.is_list:
            value = [an_element(each.kind, version, depth)]
        elif not isinstance(each.kind, Kind):
            value = a_struct(each.kind, version, depth + 1)
        else:
            value = an_element(each.kind, version, depth)
        setattr(made, each.name, value)
    return made


def an_element(kind, version, depth):
    if not isinstance(kind, Kind):
        return a_struct(kind, version, depth + 1)
    given = {Kind.STRING: "orders", Kind.UUID: bytes([1] * 16), Kind.BOOL: True, Kind.BYTES: b"", Kind.RECORDS: b""}
    return given.get(kind, 1)


def codes_in(struct):
    """Every error code that an answer says, however deep."""
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if name.endswith("error_code") and value:
            yield value
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "__struct_fields__"):
                yield from codes_in(each)


def ids(each):
    return each.__name__ if isinstance(each, type) else str(each)


@pytest.mark.parametrize(("request_class", "version"), EVERY, ids=ids)
def test_every_request_can_be_refused_in_an_answer_that_can_be_written(request_class, version):
    request = a_struct(request_class, version)
    name = request_class.__name__.removesuffix("Request")
    form = shape(request_class, version)
    if not form.can_refuse:
        assert (name, version) in NOWHERE
        return

    kept, refused = divide(request, version, IDS.get, lambda subject: ErrorCode.UNKNOWN_SERVER_ERROR)

    assert kept is None
    assert list(codes_in(refused)) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    again = parse(form.answer, version, build(refused, version))
    assert list(codes_in(again)) == [ErrorCode.UNKNOWN_SERVER_ERROR]


@pytest.mark.parametrize(("request_class", "version"), EVERY, ids=ids)
def test_what_nobody_refuses_is_left_as_it_is(request_class, version):
    request = a_struct(request_class, version)

    kept, refused = divide(request, version, IDS.get, lambda subject: None)

    assert (build(kept, version), refused) == (build(request, version), None)


@pytest.mark.parametrize(("request_class", "version"), EVERY, ids=ids)
def test_what_a_request_is_about_is_among_what_its_api_can_say(request_class, version):
    found = list(subjects(a_struct(request_class, version), version, IDS.get))

    said = {name for each in found for name, value in each._asdict().items() if value is not None}
    assert found
    assert said <= selectors(request_class)


class Two:
    """A Produce for two partitions of one topic and one of another."""

    Topic = ProduceRequest.Topic
    Data = Topic.Partition
    request: ClassVar = ProduceRequest(
        transactional_id="t",
        acks=-1,
        timeout_ms=1,
        topic_data=[
            Topic(name="orders", partition_data=[Data(index=0, records=b"a"), Data(index=1, records=b"b")]),
            Topic(name="users", partition_data=[Data(index=0, records=b"c")]),
        ],
    )


def test_a_produce_is_about_its_partitions():
    assert list(subjects(Two.request, 9, IDS.get)) == [
        Subject("orders", 0, None, "t"),
        Subject("orders", 1, None, "t"),
        Subject("users", 0, None, "t"),
    ]


def test_only_the_partition_that_is_meant_is_refused():
    def judge(subject):
        return ErrorCode.NOT_ENOUGH_REPLICAS if subject[:2] == ("orders", 1) else None

    kept, refused = divide(Two.request, 9, IDS.get, judge)

    assert [[each.index for each in topic.partition_data] for topic in kept.topic_data] == [[0], [0]]
    Answer = ProduceResponse.Topic.Partition
    (topic,) = refused.responses
    assert (topic.name, [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses]) == (
        "orders",
        [(1, ErrorCode.NOT_ENOUGH_REPLICAS, -1)],
    )
    done = ProduceResponse(
        responses=[
            ProduceResponse.Topic(name="orders", partition_responses=[Answer(index=0, base_offset=7)]),
            ProduceResponse.Topic(name="users", partition_responses=[Answer(index=0, base_offset=9)]),
        ]
    )
    joined = join(done, refused, ProduceRequest, 9)
    assert [(t.name, [(p.index, p.error_code) for p in t.partition_responses]) for t in joined.responses] == [
        ("orders", [(0, 0), (1, ErrorCode.NOT_ENOUGH_REPLICAS)]),
        ("users", [(0, 0)]),
    ]


def test_topics_of_new_versions_have_names_too():
    topic = FetchRequest.Topic(topic_id=bytes([2] * 16), partitions=[FetchRequest.Topic.Partition(partition=3)])

    assert list(subjects(FetchRequest(topics=[topic]), 13, IDS.get)) == [Subject("users", 3)]


def test_what_a_fetch_forgets_it_is_not_about():
    gone = FetchRequest.ForgottenTopic(topic="orders", partitions=[0])

    assert list(subjects(FetchRequest(topics=[], forgotten_topics_data=[gone]), 12, IDS.get)) == [Subject()]


@pytest.mark.parametrize(("key_type", "about"), [(0, Subject(group="g")), (1, Subject(transactional_id="g"))])
def test_a_coordinator_is_looked_for_by_group_or_by_transactional_id(key_type, about):
    old = FindCoordinatorRequest(key="g", key_type=key_type)
    new = FindCoordinatorRequest(coordinator_keys=["g"], key_type=key_type)

    assert [list(subjects(old, 3, IDS.get)), list(subjects(new, 4, IDS.get))] == [[about], [about]]
    _, refused = divide(new, 4, IDS.get, lambda subject: ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert refused == FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key="g", node_id=-1, error_code=15, error_message="by a fault of the test"
            )
        ]
    )


def test_settings_of_a_topic_are_about_the_topic():
    resource = DescribeConfigsRequest.Resource(resource_type=2, resource_name="orders")

    assert list(subjects(DescribeConfigsRequest(resources=[resource]), 4, IDS.get)) == [Subject("orders")]


def test_transactions_name_what_is_theirs():
    Transaction = AddPartitionsToTxnRequest.Transaction
    topic = AddPartitionsToTxnRequest.fields["v3_and_below_topics"].kind(name="orders", partitions=[0, 1])
    old = AddPartitionsToTxnRequest(v3_and_below_transactional_id="t", v3_and_below_topics=[topic])
    new = AddPartitionsToTxnRequest(transactions=[Transaction(transactional_id="t", topics=[topic])])

    both = [Subject("orders", 0, None, "t"), Subject("orders", 1, None, "t")]
    assert [list(subjects(old, 3, IDS.get)), list(subjects(new, 4, IDS.get))] == [both, both]


@pytest.mark.parametrize("version", [1, 2, 5, 7, 8, 10])
def test_a_group_is_refused_as_a_group_and_its_topics_as_topics(version):
    topic = OffsetFetchRequest.Topic(name="orders", partition_indexes=[0, 1])
    inner = OffsetFetchRequest.Group.Topic(name="orders", topic_id=bytes([1] * 16), partition_indexes=[0, 1])
    group = OffsetFetchRequest.Group(group_id="g", topics=[inner])
    request = OffsetFetchRequest(group_id="g", topics=[topic], groups=[group])

    _, whole = divide(request, version, IDS.get, lambda subject: ErrorCode.NOT_COORDINATOR)
    _, part = divide(
        request, version, IDS.get, lambda subject: ErrorCode.UNSTABLE_OFFSET_COMMIT if subject.partition == 1 else None
    )

    assert len(list(codes_in(whole))) == (2 if version < 2 else 1)
    topics = part.groups[0].topics if version >= 8 else part.topics
    assert [(each.partition_index, each.error_code, each.committed_offset) for each in topics[0].partitions] == [
        (1, ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    ]
    if version >= 8:
        assert whole.groups == [OffsetFetchResponse.Group(group_id="g", error_code=16, topics=[])]


def test_what_names_nothing_is_refused_whole():
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")

    assert divide(request, 4, IDS.get, lambda subject: ErrorCode.UNKNOWN_MEMBER_ID) == (
        None,
        HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID),
    )


def test_what_is_not_known_beside_an_error_is_minus_one():
    topic = ListOffsetsRequest.Topic(
        name="orders", partitions=[ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=-2)]
    )

    _, refused = divide(ListOffsetsRequest(topics=[topic]), 5, IDS.get, lambda subject: ErrorCode.LEADER_NOT_AVAILABLE)

    Answer = ListOffsetsResponse.Topic.Partition
    assert refused.topics[0].partitions == [
        Answer(partition_index=0, error_code=5, timestamp=-1, offset=-1, leader_epoch=-1)
    ]


def test_topics_are_refused_one_by_one():
    request = MetadataRequest(topics=[MetadataRequest.Topic(name="orders"), MetadataRequest.Topic(name="users")])

    kept, refused = divide(
        request, 9, IDS.get, lambda subject: ErrorCode.LEADER_NOT_AVAILABLE if subject.topic == "orders" else None
    )

    assert [each.name for each in kept.topics] == ["users"]
    assert [(each.name, each.error_code) for each in refused.topics] == [("orders", 5)]
