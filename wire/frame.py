"""Frames and headers: what stands before every message.

A frame is a size and that many bytes: a header and a message.  Headers came in two generations: messages
in flexible versions have tagged fields in theirs, at the end.
"""

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

from trilogue.wire.codec import codec, interleave
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.runtime import skip_tags
from trilogue.wire.schema import Request, Response

SIZE = struct.Struct(">i")
HEADER = struct.Struct(">hhih")  # key, version, correlation id, size of the client id
ANSWER = struct.Struct(">ii")  # size, correlation id
API_VERSIONS = 18

_new = tuple.__new__
"""A NamedTuple's own constructor takes twice as long."""

R = TypeVar("R", bound=Request)
S = TypeVar("S", bound=Response)


class Header(NamedTuple):
    """What a request says of itself before it says anything else."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_at: int
    """Where the header's fixed part ends.  What follows can be told only by who knows the message."""


def frame_end(buf: memoryview, at: int, limit: int) -> int | None:
    """Where the frame ends whose size stands at `at`; None while the buffer does not hold all of it.

    A size that cannot be is refused as soon as it is seen, before anything is kept for it.
    """
    if len(buf) - at < SIZE.size:
        return None
    (size,) = SIZE.unpack_from(buf, at)
    if not 0 <= size <= limit:
        raise MalformedMessage(stranger(bytes(buf[at : at + 4])) or f"{size} bytes; the limit is {limit}", "frame")
    end: int = at + SIZE.size + size
    return end if end <= len(buf) else None


def stranger(first: bytes) -> str | None:
    """Who it is that does not speak Kafka, by the first four bytes."""
    if first in (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI "):
        return "this is a Kafka port; the client speaks HTTP"
    if first[:2] == b"\x16\x03":
        return "this listener is not for TLS; the client speaks TLS"
    return None


class Frames:
    """Cuts a stream of bytes into frames.  Knows nothing of sockets."""

    def __init__(self, limit: int) -> None:
        self._limit, self._buffer = limit, bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """The frames that are complete now, without their sizes."""
        self._buffer += data
        at = 0
        while True:
            with memoryview(self._buffer) as view:
                end = frame_end(view, at, self._limit)
                frame = None if end is None else bytes(view[at + SIZE.size : end])
            if frame is None or end is None:
                del self._buffer[:at]
                return
            at = end
            yield frame


# -- requests --------------------------------------------------------------------------------------


def read_header(frame: memoryview) -> Header:
    try:
        key, version, correlation_id, size = HEADER.unpack_from(frame)
    except struct.error:
        raise MalformedMessage(f"{HEADER.size} bytes needed, {len(frame)} there", "request header") from None
    if size < 0:
        if size != -1:
            raise MalformedMessage(f"size {size} is not allowed here", "request header: client_id")
        return _new(Header, (key, version, correlation_id, None, HEADER.size))
    end = HEADER.size + size
    if end > len(frame):
        raise MalformedMessage(f"{size} bytes declared, {len(frame) - HEADER.size} left", "request header: client_id")
    return _new(Header, (key, version, correlation_id, str(frame[HEADER.size : end], "utf-8", "replace"), end))


def read_request(frame: memoryview, header: Header, message: type[R]) -> R:
    """The request behind a header.  Bytes after it are not looked at: Kafka does not either."""
    return request_reader(message, header.version)(frame, header.body_at)  # type: ignore[return-value]


@cache
def request_reader(message: type[Request], version: int) -> Callable[[memoryview, int], Request]:
    """`read_request` for one version of one request, from where the fixed part of its header ends.

    What can be known before there is a request is looked up here: each time, it would take as long as reading it.
    """
    decode = codec(message, version).decode
    tagged = version in message.flexible

    def read(frame: memoryview, at: int) -> Request:
        if tagged:
            at = at + 1 if at < len(frame) and frame[at] == 0 else read_header_tags(frame, at, "request header")
        return decode(frame, at)[0]  # type: ignore[no-any-return]

    return read


def write_request(request: Request, version: int, correlation_id: int, client_id: str | None) -> list[Any]:
    """The frame of a request, as buffers."""
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(SIZE.size)
    out += HEADER.pack(request.api_key, version, correlation_id, -1 if client_id is None else len(name))
    out += name
    if version in request.flexible:
        out.append(0)
    parts: list[tuple[int, Any]] = []
    codec(type(request), version).encode(request, out, parts)
    SIZE.pack_into(out, 0, total(out, parts) - SIZE.size)
    return interleave(out, parts)


# -- responses -------------------------------------------------------------------------------------


def has_tagged_header(response: type[Response], version: int) -> bool:
    # ApiVersions answers in the oldest header: its reader may not know ours.
    return version in response.flexible and response.api_key != API_VERSIONS


def write_response(response: Response, version: int, correlation_id: int) -> list[Any]:
    """The frame of an answer, as buffers and, where they were given, slices of files."""
    return answer_writer(type(response), version)(response, correlation_id)


@cache
def answer_writer(kind: type[Response], version: int) -> Callable[[Response, int], list[Any]]:
    """`write_response` for one version of one answer."""
    encode = codec(kind, version).encode
    head = bytes(
        ANSWER.size + has_tagged_header(kind, version)
    )  # tagged fields, where there is room for them, are none

    def write(response: Response, correlation_id: int) -> list[Any]:
        out = bytearray(head)
        parts: list[tuple[int, Any]] = []
        encode(response, out, parts)
        if not parts:
            ANSWER.pack_into(out, 0, len(out) - SIZE.size, correlation_id)
            return [out]
        ANSWER.pack_into(out, 0, total(out, parts) - SIZE.size, correlation_id)
        return interleave(out, parts)

    return write


def total(out: bytearray, parts: list[tuple[int, Any]]) -> int:
    """The size of a message whose records were not copied."""
    return len(out) + sum(len(part) for _, part in parts)


def read_response(frame: memoryview, message: type[S], version: int) -> tuple[int, S]:
    """The correlation id, and the answer."""
    if len(frame) < SIZE.size:
        raise MalformedMessage(f"{SIZE.size} bytes needed, {len(frame)} there", "response header")
    (correlation_id,) = SIZE.unpack_from(frame)
    at = SIZE.size
    if has_tagged_header(message, version):
        at = read_header_tags(frame, at, "response header")
    response, _ = codec(message, version).decode(frame, at)
    return correlation_id, response


def read_header_tags(frame: memoryview, at: int, path: str) -> int:
    """No tags are defined for headers yet: whatever is there is for others."""
    try:
        first = frame[at]
        return skip_tags(frame, at + 1, first) if first else at + 1
    except IndexError:
        raise MalformedMessage("1 bytes needed, 0 left", f"{path}: tagged fields") from None
    except MalformedMessage as error:
        raise MalformedMessage(error.problem, f"{path}: tagged fields") from None
