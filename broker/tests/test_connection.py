"""The way out of a connection: buffers and slices of files, in order, whatever the socket takes at once."""

import os
import socket

import pytest

from trilogue.broker.connection import SENDFILE_FROM, Connection, Hangup, Peer
from trilogue.storage.files import open_to_read
from trilogue.storage.slices import Slice

LARGE, SMALL = SENDFILE_FROM, SENDFILE_FROM - 1


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield Connection(None, ours, Peer("PLAINTEXT", "peer", ("here", 1))), theirs
    ours.close()
    theirs.close()


def piece(path, size, position=0, content=None):
    path.write_bytes(content if content is not None else os.urandom(position + size))
    return Slice(open_to_read(str(path)), position, size, 0)


def received(connection, theirs, size):
    """Read what is sent, a little at a time, while the connection sends what it can."""
    data = bytearray()
    while len(data) < size:
        connection.flush()
        data += theirs.recv(10_000)
    return bytes(data)


@pytest.mark.parametrize("size", [1, SMALL, LARGE, 3_000_000])
def test_parts_leave_in_order_and_whole(pair, tmp_path, size):
    connection, theirs = pair
    slices = [piece(tmp_path / "one", size), piece(tmp_path / "two", size, position=77)]
    expected = b"head" + slices[0].read() + b"between" + slices[1].read() + b"tail"
    connection.out.extend([b"head", slices[0], memoryview(b"between"), slices[1], bytearray(b"tail")])

    assert received(connection, theirs, len(expected)) == expected
    assert connection.flush()
    assert not connection.out


def test_what_the_socket_does_not_take_waits(pair):
    connection, theirs = pair
    connection.out.extend([bytes(5_000_000), b"end"])

    assert not connection.flush()
    assert received(connection, theirs, 5_000_003)[-3:] == b"end"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_log_that_was_truncated_under_an_answer_ends_the_connection(pair, tmp_path, size):
    """What was announced is not there any more; the peer would take the next answer for the rest of this one."""
    connection, _ = pair
    cut = piece(tmp_path / "log", size)
    os.truncate(tmp_path / "log", 0)
    connection.out.extend([b"head", cut])

    with pytest.raises(Hangup, match="truncated under an answer to peer"):
        connection.flush()
