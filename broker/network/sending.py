"""What is to be sent, into a socket that takes what it can: buffers gathered, slices of files by the kernel.

Where the system has no `sendfile` or no `sendmsg`, slices are read and buffers are joined.
"""

import os
import socket
from collections import deque
from itertools import islice

from trilogue.broker.network.connection import Part
from trilogue.broker.requests.peer import Hangup
from trilogue.storage.slices import Slice

HAS_SENDFILE = hasattr(os, "sendfile")
HAS_SENDMSG = hasattr(socket.socket, "sendmsg")
MSG_MORE = getattr(socket, "MSG_MORE", 0)
"""Linux's hint that more follows at once; elsewhere there is none."""

SENDFILE_FROM = 128 * 1024
"""From this size on the kernel copies records to the socket by itself: measured 1.4x there, and slower below."""

BUFFERS_PER_SEND = 512
BYTES_PER_SEND = 4 << 20
"""What is gathered for one call: the kernel takes 1,024 buffers at most, and a socket hardly more than this."""

SLICE_BYTES = 1 << 20
"""What is read of a slice at once where the kernel does not send it by itself."""


def send_some(sock: socket.socket, out: deque[Part]) -> bool:
    """Send what can be sent without waiting; whether that was everything."""
    try:
        if len(out) == 1 and type(first := out[0]) is bytearray:  # one small answer: almost always
            sent = sock.send(first)
            if sent == len(first):
                out.clear()
                return True
            out[0] = memoryview(first)[sent:]
            return False
        while out:
            first = out[0]
            if HAS_SENDFILE and isinstance(first, Slice) and len(first) >= SENDFILE_FROM:
                _send_file(sock, out, first)
            else:
                _send_buffers(sock, out)
    except BlockingIOError:
        return False
    return True


def _send_file(sock: socket.socket, out: deque[Part], piece: Slice) -> None:
    sent = os.sendfile(sock.fileno(), piece.fd, piece.position, piece.size)
    if sent == 0:
        raise cut_short()
    if sent == piece.size:
        out.popleft()
    else:
        out[0] = piece.after(sent)


def _send_buffers(sock: socket.socket, out: deque[Part]) -> None:
    """Everything up to the next slice that goes by itself, in one call."""
    parts, size = gathered(out)
    more = HAS_SENDFILE and len(out) > len(parts) and isinstance(out[len(parts)], Slice)
    flags = MSG_MORE if more else 0
    if len(parts) == 1:
        sent = sock.send(parts[0], flags)
    elif HAS_SENDMSG:
        sent = sock.sendmsg(parts, (), flags)
    else:
        sent = sock.send(b"".join(parts), flags)
    for _ in parts:
        out.popleft()
    if sent < size:
        out.appendleft(memoryview(b"".join(parts))[sent:])
        raise BlockingIOError


def gathered(out: deque[Part]) -> tuple[list[bytes | bytearray | memoryview], int]:
    """The first parts as bytes, and how many bytes that is; small slices are read."""
    parts: list[bytes | bytearray | memoryview] = []
    size = 0
    for part in islice(out, BUFFERS_PER_SEND):
        if isinstance(part, Slice):
            if HAS_SENDFILE and len(part) >= SENDFILE_FROM:
                break
            if len(part) > SLICE_BYTES:
                if not parts:
                    out[0] = part.after(SLICE_BYTES)
                    out.appendleft(read(part.before(SLICE_BYTES)))
                    return gathered(out)
                break
            part = read(part)
        parts.append(part)
        size += len(part)
        if size > BYTES_PER_SEND:
            break
    return parts, size


def read(piece: Slice) -> bytes:
    data = piece.read()
    if len(data) != len(piece):
        raise cut_short()
    return data


def cut_short() -> Hangup:
    """The log was cut while we were sending from it: what we announced is not there any more."""
    return Hangup("the log was truncated under an answer")
