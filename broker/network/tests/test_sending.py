"""The way out: buffers and slices of files, in order, whatever the socket takes at once and the system can do."""

import os
import socket
from collections import deque

import pytest

from trilogue.broker.network import sending
from trilogue.broker.network.sending import SENDFILE_FROM, SLICE_BYTES, send_some
from trilogue.broker.requests.peer import Hangup
from trilogue.storage.files import open_to_read
from trilogue.storage.slices import Slice

LARGE, SMALL = SENDFILE_FROM, SENDFILE_FROM - 1


class Sender:
    def __init__(self, sock):
        self.sock, self.out = sock, deque()

    def flush(self):
        return send_some(self.sock, self.out)


@pytest.fixture(params=["all of it", "no sendfile", "neither sendfile nor sendmsg"])
def pair(request, monkeypatch):
    if request.param != "all of it":
        monkeypatch.setattr(sending, "HAS_SENDFILE", False)
    if "sendmsg" in request.param:
        monkeypatch.setattr(sending, "HAS_SENDMSG", False)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield Sender(ours), theirs
    ours.close()
    theirs.close()


def piece(path, size, position=0, content=None):
    path.write_bytes(content if content is not None else os.urandom(position + size))
    return Slice(open_to_read(str(path)), position, size, 0)


def received(sender, theirs, size):
    """Read what is sent, a little at a time, while the other end sends what it can."""
    data = bytearray()
    while len(data) < size:
        sender.flush()
        data += theirs.recv(10_000)
    return bytes(data)


@pytest.mark.parametrize("size", [1, SMALL, LARGE, SLICE_BYTES, SLICE_BYTES + 1, 3_000_000])
def test_parts_leave_in_order_and_whole(pair, tmp_path, size):
    sender, theirs = pair
    slices = [piece(tmp_path / "one", size), piece(tmp_path / "two", size, position=77)]
    expected = b"head" + slices[0].read() + b"between" + slices[1].read() + b"tail"
    sender.out.extend([b"head", slices[0], memoryview(b"between"), slices[1], bytearray(b"tail")])

    assert received(sender, theirs, len(expected)) == expected
    assert sender.flush()
    assert not sender.out


def test_what_the_socket_does_not_take_waits(pair):
    sender, theirs = pair
    sender.out.extend([bytes(5_000_000), b"end"])

    assert not sender.flush()
    assert received(sender, theirs, 5_000_003)[-3:] == b"end"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_log_that_was_truncated_under_an_answer_ends_the_connection(pair, tmp_path, size):
    """What was announced is not there any more; the peer would take the next answer for the rest of this one."""
    sender, _ = pair
    cut = piece(tmp_path / "log", size)
    os.truncate(tmp_path / "log", 0)
    sender.out.extend([b"head", cut])

    with pytest.raises(Hangup, match="truncated under an answer"):
        sender.flush()
