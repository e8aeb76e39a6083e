"""Fetch sessions (KIP-227), told with plain numbers."""

import random

import pytest

from trilogue.broker.partitions.fetch_sessions import EVICTABLE_AFTER_MS, FetchSessions, Wanted
from trilogue.wire.errors import BrokerError, ErrorCode


def wanted(partition, offset=0, topic="t"):
    return Wanted(topic, partition, offset, 1000, -1, -1, -1)


def sessions(slots=10):
    return FetchSessions(slots, random.Random(1))


def begin(them, session_id=0, epoch=0, asks=(), forgets=(), now_ms=0, by_id=False):
    return them.begin(session_id, epoch, by_id, list(asks), list(forgets), now_ms)


def offsets(session):
    return [(each.wanted.partition, each.wanted.offset) for each in session.entries.values()]


def test_a_client_without_a_session_hears_everything_and_gets_none():
    assert begin(sessions(), epoch=-1, asks=[wanted(0)]) == (None, True)


def test_a_session_begins_with_epoch_zero_and_goes_on_with_one():
    them = sessions()
    session, full = begin(them, epoch=0, asks=[wanted(0), wanted(1)])
    assert full
    assert session.id != 0

    again, full = begin(them, session.id, 1, asks=[wanted(1, offset=9), wanted(2)], forgets=[("t", 0)])

    assert again is session
    assert not full
    assert offsets(session) == [(1, 9), (2, 0)]


def test_what_the_client_is_told_when_it_is_out_of_step():
    them = sessions()
    session, _ = begin(them, epoch=0, asks=[wanted(0)])

    for arguments, code in (
        ({"session_id": session.id + 1, "epoch": 1}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session_id": session.id, "epoch": 2}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"session_id": session.id, "epoch": 1, "by_id": True}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ):
        with pytest.raises(BrokerError) as caught:
            begin(them, **arguments)
        assert caught.value.code == code
    assert begin(them, session.id, 1) == (session, False), "and nothing has happened to the session"


def test_the_epoch_after_the_last_is_one():
    them = sessions()
    session, _ = begin(them, epoch=0, asks=[wanted(0)])
    session.epoch = 2**31 - 1

    begin(them, session.id, 2**31 - 1)

    assert session.epoch == 1


def test_a_session_ends_when_the_client_says_so_or_wants_nothing_any_more():
    them = sessions()
    first, _ = begin(them, epoch=0, asks=[wanted(0)])
    begin(them, first.id, -1, asks=[wanted(0)])
    assert len(them) == 0

    second, _ = begin(them, epoch=0, asks=[wanted(0)])
    assert begin(them, second.id, 1, forgets=[("t", 0)]) == (None, True)
    assert len(them) == 0


def test_only_what_is_new_is_told():
    session, _ = begin(sessions(), epoch=0, asks=[wanted(0)])
    none, error = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert session.is_news(("t", 0), 5, 0, False, none), "the first time"
    assert not session.is_news(("t", 0), 5, 0, False, none)
    assert session.is_news(("t", 0), 6, 0, False, none), "another high watermark"
    assert session.is_news(("t", 0), 6, 1, False, none), "another beginning"
    assert session.is_news(("t", 0), 6, 1, True, none), "data"
    assert session.is_news(("t", 0), 6, 1, False, none, diverges=True), "its log has parted from ours"
    assert session.is_news(("t", 0), -1, -1, False, error)
    assert session.is_news(("t", 0), -1, -1, False, error), "errors are repeated"
    assert session.is_news(("t", 0), 6, 1, False, none), "and their end is news"


def test_where_logs_part_is_told_each_time_and_the_high_watermark_again_afterwards():
    session, _ = begin(sessions(), epoch=0, asks=[wanted(0)])
    none = ErrorCode.NONE
    assert session.is_news(("t", 0), 5, 0, False, none)

    assert session.is_news(("t", 0), 5, 0, False, none, diverges=True), "nothing else has changed"
    assert session.is_news(("t", 0), 5, 0, False, none), "whoever has to cut his log has not listened to that"
    assert not session.is_news(("t", 0), 5, 0, False, none)


def test_who_asks_under_another_epoch_or_for_less_is_told_again():
    them = sessions()
    session, _ = begin(them, epoch=0, asks=[wanted(0, offset=7)])
    none = ErrorCode.NONE
    for number, (asked, again) in enumerate(
        (
            (wanted(0, offset=8), False),
            (wanted(0, offset=8)._replace(leader_epoch=3), True),
            (wanted(0, offset=9)._replace(leader_epoch=3), False),
            (wanted(0, offset=8)._replace(leader_epoch=3), True),
        )
    ):
        session.is_news(("t", 0), 5, 0, False, none)
        begin(them, session.id, number + 1, asks=[asked])
        assert session.is_news(("t", 0), 5, 0, False, none) is again, asked


def test_who_got_data_waits_for_the_others():
    session, _ = begin(sessions(), epoch=0, asks=[wanted(0), wanted(1)])

    session.is_news(("t", 0), 5, 0, True, ErrorCode.NONE)

    assert [partition for partition, _ in offsets(session)] == [1, 0]


def test_when_there_is_no_room_only_a_session_long_unused_gives_way():
    them = sessions(slots=1)
    first, _ = begin(them, epoch=0, asks=[wanted(0)], now_ms=0)

    assert begin(them, epoch=0, asks=[wanted(1)], now_ms=EVICTABLE_AFTER_MS - 1) == (None, True)
    second, _ = begin(them, epoch=0, asks=[wanted(1)], now_ms=EVICTABLE_AFTER_MS)
    assert second is not None
    with pytest.raises(BrokerError):
        begin(them, first.id, 1)
