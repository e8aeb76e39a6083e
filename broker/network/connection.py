"""One connection: frames in, answers out, or something to wait for.

Answers leave in the order of the requests, and one request is handled at a time: as in Kafka, that is a promise.
No tasks here and no waiting: `gate.py` calls, and takes the connection aside when it has to wait.
"""

import contextlib
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.requests.registry import APIS, Again, Answer
from trilogue.storage.slices import Slice
from trilogue.wire.apis.api_versions import ApiVersionsResponse
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.errors import ErrorCode, MalformedMessage
from trilogue.wire.frame import (
    API_VERSIONS,
    SIZE,
    Header,
    answer_writer,
    frame_end,
    read_header,
    request_reader,
    write_response,
)
from trilogue.wire.produce_templates import ProduceTemplates
from trilogue.wire.schema import Response

if TYPE_CHECKING:
    from trilogue.broker.broker import Broker

logger = logging.getLogger(__name__)

SENDFILE_FROM = 128 * 1024
"""From this size on the kernel copies records to the socket by itself: measured 1.4x there, and slower below."""

BUFFERS_PER_SEND = 512
BYTES_PER_SEND = 4 << 20
"""What is gathered for one call: the kernel takes 1,024 buffers at most, and a socket hardly more than this."""

NEXT = struct.Struct(">4xh")  # the size of a frame, and the key of its API


class Connection:
    """Bytes come in by `feed`, parts to be sent gather in `out`, and `later` holds what has to be waited for."""

    __slots__ = (
        "_again",
        "_asked",
        "_broker",
        "_templates",
        "aside",
        "last_active",
        "later",
        "out",
        "peer",
        "sock",
        "tail",
        "tail_size",
        "watched",
    )

    def __init__(self, broker: "Broker", sock: socket.socket, peer: Peer) -> None:
        self._broker, self.sock, self.peer = broker, sock, peer
        self.out: deque[Any] = deque()
        self.later: Coroutine[Any, Any, Response | None] | None = None
        self._asked = (0, 0)
        """Version and correlation id of the request that `later` answers."""
        self._again: Again | None = None
        """Handles what has become a template; until something may, there are none."""
        self._templates: ProduceTemplates
        self.tail: bytearray | None = None
        """The beginning of a frame whose end has not arrived; its first `tail_size` bytes are it."""
        self.tail_size = 0
        self.last_active = 0.0
        self.aside = False
        """A task of its own looks after it: at the gate, nothing is read from it."""
        self.watched = False
        """At the gate, it is noticed when something comes."""

    # -- in ------------------------------------------------------------------------------------

    def feed(self, view: memoryview) -> int:
        """Handle the complete frames at the beginning of `view`; answer how many bytes that took.

        Stops early at a request that has to wait.
        """
        at, size = 0, len(view)
        limit = self._broker.request_bytes_max
        while at < size and self.later is None:
            end = frame_end(view, at, limit)
            if end is None:
                break
            self._handle(view[at + SIZE.size : end])
            at = end
        return at

    def _handle(self, frame: memoryview) -> None:
        answer: Answer | bytearray
        peer = self.peer
        if self._again is not None and (recalled := self._templates.recall(frame)) is not None:
            template, correlation_id = recalled
            version = peer.version = template.version
            peer.client_id = template.client_id
            answer = self._again(self._broker, template, correlation_id, peer)
        else:
            key, version, correlation_id, client_id, at = header = read_header(frame)
            api = APIS.get(key)
            if api is None or version not in api.numbers:
                self._refuse(header)
                return
            peer.version, peer.client_id = version, client_id
            request = request_reader(api.request, version)(frame, at)
            if isinstance(request, ProduceRequest):
                if self._again is None:
                    self._again, self._templates = api.again, ProduceTemplates()
                self._templates.learn(frame, header, request)
            answer = api.handler(self._broker, request, peer)
        if isinstance(answer, bytearray):
            self.out.append(answer)
        elif isinstance(answer, Response):
            self.out += answer_writer(type(answer), version)(answer, correlation_id)
        elif answer is not None:
            self.later, self._asked = answer, (version, correlation_id)

    def _refuse(self, header: Header) -> None:
        if header.key != API_VERSIONS:
            known = APIS.get(header.key)
            offered = f"we answer {known.versions}" if known else "we do not answer that API"
            raise MalformedMessage(f"API {header.key} version {header.version}: {offered}", str(self.peer))
        # Whoever asks in a version that we lack hears ours in the oldest form, and asks again (KIP-511).
        versions = APIS[API_VERSIONS].advertised
        ours = ApiVersionsResponse.ApiVersion(
            api_key=API_VERSIONS, min_version=versions.first, max_version=versions.last
        )
        answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ours])
        self.out.extend(write_response(answer, 0, header.correlation_id))

    def next_key(self) -> int | None:
        """Which API is asked for next, as far as that has arrived; it stays where it is."""
        head = bytes(self.tail[: min(self.tail_size, NEXT.size)]) if self.tail is not None else b""
        if len(head) < NEXT.size:
            with contextlib.suppress(OSError):  # whoever reads will hear of it
                head += self.sock.recv(NEXT.size - len(head), socket.MSG_PEEK)
        return NEXT.unpack(head)[0] if len(head) == NEXT.size else None

    async def finish(self) -> None:
        """Wait for what was to be waited for, and queue the answer."""
        assert self.later is not None
        try:
            answer = await self.later
        finally:
            self.later = None
            self.peer.impatient = False
        if answer is not None:
            self.out.extend(write_response(answer, *self._asked))

    # -- out -----------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Send what can be sent without waiting; whether that was everything."""
        out = self.out
        try:
            if len(out) == 1 and type(out[0]) is bytearray:  # one small answer: almost always
                sent = self.sock.send(out[0])
                if sent == len(out[0]):
                    out.clear()
                    return True
                out[0] = memoryview(out[0])[sent:]
                return False
            while out:
                if isinstance(out[0], Slice) and len(out[0]) >= SENDFILE_FROM:
                    self._send_file(out)
                else:
                    self._send_buffers(out)
        except BlockingIOError:
            return False
        return True

    def _send_file(self, out: deque[Any]) -> None:
        piece: Slice = out[0]
        sent = os.sendfile(self.sock.fileno(), piece.fd, piece.position, piece.size)
        if sent == 0:
            raise self._cut_short()
        if sent == piece.size:
            out.popleft()
        else:
            out[0] = Slice(piece.handle, piece.position + sent, piece.size - sent, piece.base_offset)

    def _cut_short(self) -> Hangup:
        """The log was cut while we were sending from it: what we announced is not there any more."""
        return Hangup(f"the log was truncated under an answer to {self.peer}")

    def _send_buffers(self, out: deque[Any]) -> None:
        """Everything up to the next large slice, in one call."""
        parts: list[Any] = []
        size = 0
        more = False
        for part in out:
            if isinstance(part, Slice):
                if len(part) >= SENDFILE_FROM:
                    more = True
                    break
                announced = len(part)
                part = part.read()
                if len(part) != announced:
                    raise self._cut_short()
            parts.append(part)
            size += len(part)
            if len(parts) == BUFFERS_PER_SEND or size > BYTES_PER_SEND:
                break
        taken = len(parts)
        flags = socket.MSG_MORE if more else 0
        sent = self.sock.send(parts[0], flags) if taken == 1 else self.sock.sendmsg(parts, (), flags)
        for _ in range(taken):
            out.popleft()
        if sent < size:
            rest = memoryview(b"".join(parts))[sent:]
            out.appendleft(rest)
            raise BlockingIOError
