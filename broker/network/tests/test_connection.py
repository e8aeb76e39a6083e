"""A connection without a socket: bytes in, answers out, whatever pieces the bytes come in."""

from math import inf

import pytest
import trio

from trilogue.broker.network.buffers import RECEIVE_BYTES, Spares
from trilogue.broker.network.connection import Connection
from trilogue.broker.requests.later import Parked, nobody
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import APIS, Api
from trilogue.broker.requests.turns import Turns
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.frame import Frames, read_response, write_request


class Patient(Parked):
    """Waits until its time is over."""

    def take(self, now):
        return FetchResponse(responses=[]) if now >= self.deadline else None

    def close(self):
        self.wake = nobody


class Limits:
    """All that a connection asks of a broker."""

    request_bytes_max = 1 << 20
    turns = Turns()


@pytest.fixture
def connection(monkeypatch):
    """Heartbeats are echoed; a fetch waits, and gives way."""

    def echo(broker, request, peer):
        return HeartbeatResponse(error_code=request.generation_id)

    def wait(broker, request, peer):
        return Patient(inf)

    for request, handler, gives_way in ((HeartbeatRequest, echo, False), (FetchRequest, wait, True)):
        versions = request.versions
        numbers = range(versions.first, versions.last + 1)
        api = Api(request, versions, handler, versions, numbers, None, gives_way)
        monkeypatch.setitem(APIS, request.api_key, api)
    made = Connection(Limits(), Peer("PLAINTEXT", "peer", ("here", 1)), Spares())
    yield made
    made.close()


def beat(number, padding=0):
    request = HeartbeatRequest(group_id="g" * padding, generation_id=number, member_id="m")
    return b"".join(write_request(request, 0, number, None))


def fetch(number):
    return b"".join(write_request(FetchRequest(max_wait_ms=1000, min_bytes=1, topics=[]), 4, number, None))


def bring(connection, data):
    """As a transport does, whatever comes at once."""
    while data:
        if connection.tail is None:
            connection.receive(memoryview(bytearray(data)))
            return
        room = connection.room()
        size = min(len(room), len(data))
        room[:size] = data[:size]
        room.release()
        connection.received(size)
        data = data[size:]


def answered(connection):
    frames = Frames(1 << 20).feed(b"".join(map(bytes, connection.out)))
    connection.out.clear()
    return [read_response(memoryview(each), HeartbeatResponse, 0)[0] for each in frames]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 11, 40, 1000])
def test_frames_are_answered_whatever_pieces_they_come_in(connection, size):
    data = b"".join(beat(number, padding=number * 7) for number in range(20))
    for at in range(0, len(data), size):
        bring(connection, data[at : at + size])

    assert answered(connection) == list(range(20))
    assert connection.tail is None


def test_room_ends_with_the_frame(connection):
    whole = beat(1, padding=500)
    bring(connection, whole[:100])

    with connection.room() as room:
        assert len(room) == len(whole) - 100


def test_room_grows_with_what_has_come_and_not_with_what_was_announced(connection):
    bring(connection, (1 << 20).to_bytes(4, "big") + bytes(10))

    with connection.room() as room:
        assert len(room) == 2 * RECEIVE_BYTES - 14


def test_a_frame_that_is_too_large_is_refused_when_its_size_is_known(connection):
    bring(connection, ((1 << 20) + 1).to_bytes(4, "big")[:3])

    with pytest.raises(MalformedMessage, match="the limit is 1048576"):
        bring(connection, ((1 << 20) + 1).to_bytes(4, "big")[3:])


def test_what_follows_a_request_that_waits_is_kept_for_later(connection):
    bring(connection, beat(1) + fetch(2) + beat(3) + beat(4))

    assert answered(connection) == [1]
    assert connection.gives_way
    assert connection.tail_size == len(beat(3) + beat(4))


async def sent(connection):
    """Wait and send as long as there is something to wait for."""
    answers = []

    async def send():
        frames = Frames(1 << 20).feed(b"".join(map(bytes, connection.out)))
        answers.extend(int.from_bytes(frame[:4], "big") for frame in frames)
        connection.out.clear()

    await connection.settle(connection.finish, send)
    return answers


@pytest.mark.parametrize("known", range(7))
def test_what_waits_gives_way_to_another_request_as_soon_as_that_is_known(connection, known):
    """Its size and its key are six bytes, of which some are kept and the others are only looked at."""
    following = beat(3)
    bring(connection, fetch(2))
    if known:
        connection.keep(following[:known])
    assert connection.head_lacks == 6 - known
    connection.look_ahead(following[known:6])
    connection.keep(following[known:])

    assert trio.run(sent, connection) == [2, 3]


def test_what_waits_does_not_give_way_to_its_own_kind(connection):
    bring(connection, fetch(1) + fetch(2))
    connection.look_ahead(b"")

    async def main():
        with trio.move_on_after(0.05):
            await sent(connection)
            return "answered"
        return "waits"

    assert trio.run(main) == "waits"


def test_what_waits_gives_way_when_the_peer_has_hung_up(connection):
    bring(connection, fetch(1))
    connection.look_ahead(b"")

    assert trio.run(sent, connection) == [1]


def test_what_takes_long_or_fills_the_memory_is_handled_in_pieces(connection, monkeypatch):
    monkeypatch.setattr("trilogue.broker.network.connection.PIECE_SECONDS", 0.0)
    bring(connection, beat(1) + beat(2) + beat(3))

    assert connection.long
    assert connection.waits
    assert answered(connection) == [1]
    assert trio.run(sent, connection) == [2, 3]
    assert connection.tail is None

    monkeypatch.setattr("trilogue.broker.network.connection.PIECE_SECONDS", 10.0)
    monkeypatch.setattr("trilogue.broker.network.connection.PIECE_BYTES", 19)
    bring(connection, beat(4) + beat(5) + beat(6) + beat(7))

    assert answered(connection) == [4, 5]
    assert trio.run(sent, connection) == [6, 7]


def test_whoever_was_answered_need_not_wait_for_what_was_asked_behind_it(connection):
    bring(connection, beat(1) + fetch(2))
    heard = []

    async def send():
        heard.extend(answered(connection))

    async def main():
        with trio.move_on_after(0.05):
            await connection.settle(connection.finish, send)

    trio.run(main)
    assert heard == [1]
