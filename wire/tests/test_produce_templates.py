"""A request that is remembered says what it would have said if it had been read."""

import random
from itertools import cycle

import pytest

from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.frame import read_header, read_request, write_request, write_response
from trilogue.wire.produce_templates import LENGTHS_MAX, TEMPLATES_MAX, ProduceTemplate, ProduceTemplates
from trilogue.wire.tests.test_hostile import mutated

FLEXIBLE = range(9, 14)


def asked(version, records, topic="orders", index=0, **given):
    named = {"name": topic} if version < 13 else {"topic_id": topic.encode().ljust(16)}
    data = ProduceRequest.Topic.Partition(index=index, records=records)
    return ProduceRequest(
        **{"acks": 1, "timeout_ms": 5000, **given}, topic_data=[ProduceRequest.Topic(**named, partition_data=[data])]
    )


def framed(request, version, correlation_id=7, client_id="app"):
    return memoryview(b"".join(write_request(request, version, correlation_id, client_id)))[4:]


def learn(templates, frame):
    header = read_header(frame)
    templates.learn(frame, header, read_request(frame, header, ProduceRequest))


def knowing(*frames):
    templates = ProduceTemplates()
    for frame in frames:
        learn(templates, frame)
    return templates


@pytest.mark.parametrize("version", FLEXIBLE)
@pytest.mark.parametrize("size", [1, 126, 127, 16_382, 16_383, 2_097_150, 2_097_151])
def test_what_came_before_comes_back_with_its_new_records(version, size):
    templates = knowing(framed(asked(version, b"first"), version))
    request = asked(version, bytes(size))

    template, correlation_id = templates.recall(framed(request, version, 8))

    assert (template.request, correlation_id, template.version, template.client_id) == (request, 8, version, "app")


@pytest.mark.parametrize("version", FLEXIBLE)
def test_its_answer_is_the_one_that_would_have_been_written(version):
    frame = framed(asked(version, b"records"), version)
    request = read_request(frame, read_header(frame), ProduceRequest)
    topic = request.topic_data[0]
    done = ProduceResponse.Topic.Partition(index=0, base_offset=2**40, log_append_time_ms=-1, log_start_offset=3)
    response = ProduceResponse(
        responses=[ProduceResponse.Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=[done])]
    )

    answer = ProduceTemplate(read_header(frame), request).answer(99, 2**40, -1, 3)

    assert answer == b"".join(write_response(response, version, 99))


@pytest.mark.parametrize(
    "other",
    [
        framed(asked(9, b"x", topic="others"), 9),
        framed(asked(9, b"x", index=1), 9),
        framed(asked(9, b"x", acks=-1), 9),
        framed(asked(9, b"x", timeout_ms=1), 9),
        framed(asked(9, b"x", transactional_id="t"), 9),
        framed(asked(9, b"x"), 9, client_id="another"),
        framed(asked(10, b"x"), 10),
        framed(asked(9, None), 9),
        framed(asked(9, b""), 9),
        framed(asked(8, b"x"), 8),
    ],
)
def test_what_differs_in_anything_else_is_not_taken_for_it(other):
    assert knowing(framed(asked(9, b"first"), 9)).recall(other) is None


@pytest.mark.parametrize(
    "frame",
    [
        framed(asked(8, b"x"), 8),
        framed(asked(9, None), 9),
        framed(asked(9, b""), 9),
        framed(asked(9, b"x", transactional_id="t"), 9),
        memoryview(bytes(framed(asked(9, b"x"), 9)) + b"\0"),
        memoryview(bytes(framed(asked(9, b"x\0\0\0"), 9))[:-3] + b"\1\5\0\0\0"),
    ],
    ids=["inflexible", "null", "empty", "transactional", "trailing byte", "tagged field"],
)
def test_what_is_not_remembered(frame):
    assert knowing(frame).recall(frame) is None


def test_partitions_and_topics_of_a_producer_are_remembered_side_by_side():
    places = [(topic, index) for topic in ("a", "bb", "ccc") for index in range(8)]
    templates = knowing(*(framed(asked(9, b"first", topic=topic, index=index), 9) for topic, index in places))

    for topic, index in places:
        request = asked(9, b"next", topic=topic, index=index)
        template, _ = templates.recall(framed(request, 9))
        assert template.request == request


def test_there_is_an_end_to_what_a_connection_remembers():
    partitions = [framed(asked(9, b"x", index=index), 9) for index in range(TEMPLATES_MAX + 1)]
    templates = knowing(*partitions)
    assert [templates.recall(frame) is not None for frame in partitions] == [True] * TEMPLATES_MAX + [False]

    topics = [framed(asked(9, b"x", topic="t" * size), 9) for size in range(1, LENGTHS_MAX + 2)]
    templates = knowing(*topics)
    assert [templates.recall(frame) is not None for frame in topics] == [True] * LENGTHS_MAX + [False]


def test_hostile_frames_are_left_to_the_reader_or_understood_as_it_does():
    chance = random.Random(20261118)
    recalled = left = 0
    for version in cycle(FLEXIBLE):
        frame = framed(asked(version, chance.randbytes(chance.choice([1, 60, 126, 127, 300]))), version)
        templates = knowing(frame, framed(asked(version, b"2", topic="payments", index=1), version))
        changed = memoryview(mutated(bytes(frame), chance))
        found = templates.recall(changed)
        if found is None:
            left += 1
        else:
            template, correlation_id = found
            header = read_header(changed)
            assert (template.version, correlation_id, template.client_id) == header[1:4], changed.hex()
            assert template.request == read_request(changed, header, ProduceRequest), changed.hex()
            recalled += 1
        if recalled + left == 20_000:
            break
    assert min(recalled, left) > 2_000, "the mutations are worth something"


def test_a_frame_cut_short_anywhere_is_not_recalled():
    frame = framed(asked(9, bytes(300)), 9)
    templates = knowing(frame)

    assert [templates.recall(frame[:end]) for end in range(len(frame))] == [None] * len(frame)
    with pytest.raises(MalformedMessage):
        read_request(frame[:-1], read_header(frame), ProduceRequest)
