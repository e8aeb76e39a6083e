"""The talk without a connection: versions, correlation ids, answers in pieces and out of the blue."""

import pytest

from trilogue.client.dialogue import Dialogue, check
from trilogue.client.errors import NotSpoken
from trilogue.wire.apis.api_versions import ApiVersionsResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.frame import write_response
from trilogue.wire.schema import Versions

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def greeted(**offered) -> Dialogue:
    dialogue = Dialogue("test")
    dialogue.offered = {HeartbeatRequest.api_key: Versions(*offered.get("heartbeat", (0, 4)))}
    return dialogue


def answer(ticket, code=0, version=4) -> bytes:
    return b"".join(write_response(HeartbeatResponse(error_code=code), version, ticket.correlation_id))


@pytest.mark.parametrize(
    ("offered", "cap", "chosen"), [((0, 4), None, 4), ((0, 9), None, 4), ((0, 2), None, 2), ((0, 4), 3, 3)]
)
def test_the_highest_version_that_both_know_and_the_caller_permits(offered, cap, chosen):
    assert greeted(heartbeat=offered).version(HeartbeatRequest, cap) == chosen


@pytest.mark.parametrize(("offered", "cap"), [((5, 9), None), ((3, 4), 2)])
def test_no_version_in_common(offered, cap):
    with pytest.raises(NotSpoken, match=r"the broker answers Heartbeat in versions"):
        greeted(heartbeat=offered).version(HeartbeatRequest, cap)


def test_an_api_that_the_broker_does_not_have():
    with pytest.raises(NotSpoken, match="the broker answers Heartbeat in versions none, we ask in 0-4"):
        Dialogue("test").version(HeartbeatRequest)


def test_answers_find_their_questions_in_whatever_pieces_they_come():
    dialogue = greeted()
    tickets = [dialogue.ask(HEARTBEAT, HeartbeatResponse)[0] for _ in range(3)]
    data = b"".join(answer(ticket, code) for code, ticket in enumerate(tickets))

    for at in range(len(data)):
        dialogue.feed(data[at : at + 1])

    assert [dialogue.take(ticket).error_code for ticket in reversed(tickets)] == [2, 1, 0]
    assert dialogue.take(tickets[0]) is None


def test_an_answer_that_nobody_waits_for_any_more_is_dropped():
    dialogue = greeted()
    late, ticket = (dialogue.ask(HEARTBEAT, HeartbeatResponse)[0] for _ in range(2))
    dialogue.forget(late)

    dialogue.feed(answer(late) + answer(ticket, 7))

    assert (dialogue.take(late), dialogue.take(ticket).error_code) == (None, 7)


def test_an_answer_to_a_question_that_was_not_asked_is_refused():
    dialogue = greeted()
    ticket, _ = dialogue.ask(HEARTBEAT, HeartbeatResponse)
    dialogue.feed(answer(ticket))

    with pytest.raises(MalformedMessage, match="an answer to question 1, which is not open"):
        dialogue.feed(answer(ticket))


def test_a_broker_that_does_not_know_our_greeting_is_greeted_in_the_oldest_way():
    dialogue = Dialogue("test")
    ticket, _ = dialogue.greet("trilogue", "1")
    theirs = [ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)]
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=theirs)
    dialogue.feed(b"".join(write_response(refusal, 0, ticket.correlation_id)))
    assert dialogue.greeted(dialogue.take(ticket)) is False

    ticket, _ = dialogue.greet("trilogue", "1")

    assert ticket.version == 0
    dialogue.feed(b"".join(write_response(ApiVersionsResponse(api_keys=theirs), 0, ticket.correlation_id)))
    assert dialogue.greeted(dialogue.take(ticket)) is True
    assert dialogue.offered == {18: Versions(0, 2)}


def test_an_error_code_becomes_what_it_says():
    check(ErrorCode.NONE)
    with pytest.raises(BrokerError, match="no such topic") as raised:
        check(3)
    assert raised.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(BrokerError, match="error code 9999, which we do not know"):
        check(9999)
