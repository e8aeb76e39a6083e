"""One connection: bytes in, answers out, or something to wait for.

It knows no socket and no API by name; `gate.py` and `tasks.py` bring what has come and take what is to be sent.
Answers leave in the order of the requests, and one request is handled at a time: as in Kafka, that is a promise.

Bytes come by `receive`, in whole and broken frames.  The beginning of a frame whose end has not come is kept here; the
rest of it goes into `room`, and `received` is told how much that was.  What is to be sent gathers in `out`.  `later` is
what has to be waited for: until `finish` has waited for it nothing more is handled, and `resume` goes on from there.
Likewise when it has had its piece of the loop: `long` says that others come first.

Other kinds of connections may be put in their place (`guests.py`): they see each frame first, in `_handle`, and make
their own answer with `promise`.

What is `parked` needs no task to wait in: `wake` is called, which is the transport's, and `unpark` takes the answer.
What is done and only not safe yet waits in `unconfirmed`, and requests of the same API are handled meanwhile: a
producer whose records have to reach followers does not wait for each batch.  Answers keep their order.
"""

import struct
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from time import monotonic
from types import CoroutineType
from typing import NamedTuple

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.buffers import RECEIVE_BYTES, Spares
from trilogue.broker.requests.later import Later, Parked, Unconfirmed, nobody, settled, waited
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import APIS, Answer, Api, Repeats, Soon, Templates
from trilogue.broker.requests.turns import PIECE_BYTES, PIECE_SECONDS
from trilogue.storage.slices import Slice
from trilogue.wire.apis.api_versions import ApiVersionsResponse
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
from trilogue.wire.schema import Response

NEXT = struct.Struct(">4xh")  # the size of a frame, and the key of its API

LARGE_BYTES = 256 << 10
"""A request that is not records: to read it takes longer than a piece of the loop should."""
LARGE_ITEMS = 1000
"""Of an answer; likewise to write it."""

UNCONFIRMED_MAX = 100
"""So many may wait to be confirmed; Java's producer has five under way, librdkafka up to a million."""

Part = bytes | bytearray | memoryview | Slice


class Pending(NamedTuple):
    """An answer that is not to be sent yet: it is there, or waited for."""

    parts: Sequence[Part]
    later: Later[Response | None] | Parked[Response | None] | None = None
    asked: tuple[int, int] = (0, 0)


class Connection:
    __slots__ = (
        "_api",
        "_asked",
        "_begun",
        "_broker",
        "_repeats",
        "_spares",
        "_templates",
        "_unconfirmed_key",
        "bytes_max",
        "later",
        "long",
        "out",
        "parked",
        "peer",
        "tail",
        "tail_size",
        "takes_more",
        "unconfirmed",
        "wake",
    )

    def __init__(self, broker: Broker, peer: Peer, spares: Spares) -> None:
        self._broker, self.peer, self._spares = broker, peer, spares
        self.bytes_max = broker.request_bytes_max
        """Of a request; who announces more is not a client."""
        self.out: deque[Part] = deque()
        self.later: Later[Soon] | None = None
        self.parked: Parked[Response | None] | None = None
        self.wake: Callable[[], None] = nobody
        self.long = False
        """What came last has taken long to handle, or its answers are large: what is left of it waits for its turn."""
        self.unconfirmed: deque[Pending] = deque()
        """Answers of an API whose requests need not wait for each other, in their order."""
        self._unconfirmed_key = b""
        """Which API that is."""
        self.takes_more = False
        """Although we wait, what comes now may be handled."""
        self._api: Api | None = None
        """Of the request that is waited for; of a template's it does not matter."""
        self._asked = (0, 0)
        """Its version and correlation id."""
        self._begun = 0.0
        """When the first request was handled of what came last, but for what comes again and again."""
        self._repeats: Repeats | None = None
        self._templates: Templates | None = None
        """Of the first API asked for that has any."""
        self.tail: bytearray | None = None
        """The beginning of a frame whose end has not arrived; its first `tail_size` bytes are it."""
        self.tail_size = 0

    # -- in ------------------------------------------------------------------------------------

    def receive(self, view: memoryview) -> None:
        """Handle what has come while no frame had begun.  Whoever waits or sends has copied what it needs of it."""
        done = self._feed(view)
        if done < len(view):
            rest = view[done:]
            self.tail = self._spares.copy(rest) if len(rest) > SIZE.size else bytearray(rest)
            self.tail_size = len(rest)

    def room(self) -> memoryview:
        """Where the rest of a frame that has begun goes; never beyond its end: what follows it comes by `receive`."""
        tail, have = self.tail, self.tail_size
        assert tail is not None
        wanted = SIZE.size if have < SIZE.size else SIZE.size + SIZE.unpack_from(tail)[0]
        if wanted > len(tail):
            # Grows with what has arrived, not with what was announced; replaced, because views of it may live on.
            self.tail = bytearray(min(wanted, 2 * max(have, RECEIVE_BYTES)))
            self.tail[:have] = tail[:have]
            tail = self.tail
        return memoryview(tail)[have : min(wanted, len(tail))]

    def received(self, size: int) -> None:
        """So many bytes have come into the room."""
        self.tail_size += size
        if self.tail_size >= SIZE.size:
            self.resume()

    def resume(self) -> None:
        """Handle the complete frames among what was kept."""
        tail, size = self.tail, self.tail_size
        if tail is None:
            return
        with memoryview(tail) as view, view[:size] as filled:
            done = self._feed(filled)
        if done == size:
            self.tail, self.tail_size = None, 0
            self._spares.put(tail)
        elif done:
            tail[: size - done] = tail[done:size]
            self.tail_size = size - done

    def _feed(self, view: memoryview) -> int:
        """Handle the complete frames at the beginning of `view`; answer how many bytes that took.

        Stops early at a request that has to wait, and when it has taken long.
        """
        at, size = 0, len(view)
        limit = self.bytes_max
        queued = 0
        self._begun, self.long = 0.0, False
        while at < size and self.later is None and self.parked is None and not self.long:
            end = frame_end(view, at, limit)
            if end is None:
                break
            if self.unconfirmed and not self._may_follow(view, at):
                return at
            if added := self._handle(view[at + SIZE.size : end]):
                queued += added
                self.long = queued > PIECE_BYTES or monotonic() - self._begun > PIECE_SECONDS
            at = end
        if self.unconfirmed:
            self.takes_more = self.later is None and not self.long
        return at

    def _may_follow(self, view: memoryview, at: int) -> bool:
        """Whether the frame there may be handled before what is done is confirmed."""
        same = view[at + SIZE.size : at + NEXT.size] == self._unconfirmed_key
        self.takes_more = same and len(self.unconfirmed) < UNCONFIRMED_MAX
        return self.takes_more

    def _handle(self, frame: memoryview) -> int:
        """Answer how much that is towards a piece of the loop: nothing, for what comes again and again."""
        answer: Answer | bytearray
        peer = self.peer
        api = None
        if self._templates is not None and (recalled := self._templates.recall(frame)) is not None:
            assert self._repeats is not None
            template, correlation_id = recalled
            version = peer.version = template.version
            peer.client_id = template.client_id
            answer = self._repeats.handler(self._broker, template, correlation_id, peer)
        else:
            self._begun = self._begun or monotonic()
            key, version, correlation_id, client_id, at = header = read_header(frame)
            api = APIS.get(key)
            if api is None or version not in api.numbers:
                self._refuse(header)
                return len(frame)
            peer.version, peer.client_id = version, client_id
            if len(frame) > LARGE_BYTES and api.repeats is None:
                self.later, self._api, self._asked = self._read_large(api, bytes(frame), at), api, header[1:3]
                return len(frame)
            request = request_reader(api.request, version)(frame, at)
            if api.repeats is not None:
                if self._templates is None:
                    self._repeats, self._templates = api.repeats, api.repeats.templates()
                if self._repeats is api.repeats:
                    self._templates.learn(frame, header, request)
            answer = api.handler(self._broker, request, peer)
        if isinstance(answer, bytearray):
            if self.unconfirmed:
                self.unconfirmed.append(Pending([answer]))
            else:
                self.out.append(answer)
            return 0
        if isinstance(answer, Response):
            parts = answer_writer(type(answer), version)(answer, correlation_id)
            if self.unconfirmed:
                self.unconfirmed.append(Pending(parts))
            else:
                self.out += parts
            return sum(map(len, parts))
        if isinstance(answer, Unconfirmed):
            later = answer.later
            if isinstance(later, Parked):
                later.wake = self.wake
            self._unconfirmed_key = bytes(frame[: NEXT.size - SIZE.size])
            self.unconfirmed.append(Pending((), later, (version, correlation_id)))
            return 0
        if answer is not None:
            self._api, self._asked = api, (version, correlation_id)
            if isinstance(answer, Parked):
                self._park(answer)
            else:
                self.later = answer
        return len(frame)

    def _park(self, answer: Parked[Response | None]) -> None:
        answer.wake = self.wake
        self.parked = answer

    def promise(self, answer: Later[Response | None], api: Api, version: int, correlation_id: int) -> None:
        """The request at hand is answered so, in its turn; by those who handle it otherwise than `_handle`."""
        if self.unconfirmed:
            self.unconfirmed.append(Pending((), answer, (version, correlation_id)))
        else:
            self.later, self._api, self._asked = answer, api, (version, correlation_id)

    async def _read_large(self, api: Api, frame: bytes, at: int) -> Soon:
        """A request of very many things: to read it takes long, and cannot be done in pieces."""
        reader = request_reader(api.request, self.peer.version)
        request = await trio.to_thread.run_sync(reader, memoryview(frame), at)
        answer = api.handler(self._broker, request, self.peer)
        if isinstance(answer, Unconfirmed):
            return await settled(answer)
        return await answer if type(answer) is CoroutineType else answer  # type: ignore[return-value]

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

    # -- waiting -------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """For an answer, or for its next turn."""
        return self.later is not None or self.is_parked or (self.long and self.tail is not None)

    @property
    def is_parked(self) -> bool:
        return self.parked is not None or bool(self.unconfirmed)

    @property
    def needs_task(self) -> bool:
        """Whether there is something that a task has to wait for."""
        return self._must_finish(parks=True) or (self.long and self.tail is not None)

    def _must_finish(self, parks: bool) -> bool:
        if self.later is not None:
            return True
        if not parks:
            return self.is_parked
        return bool(self.unconfirmed) and type(self.unconfirmed[0].later) is CoroutineType

    @property
    def is_blocked(self) -> bool:
        """Whether what comes now cannot be handled yet, for what is parked."""
        return self.parked is not None or (bool(self.unconfirmed) and not self.takes_more)

    @property
    def deadline(self) -> float:
        """When what is parked has to be looked at at the latest."""
        parked = self.unconfirmed[0].later if self.parked is None and self.unconfirmed else self.parked
        return parked.deadline if isinstance(parked, Parked) else inf

    @property
    def gives_way(self) -> bool:
        """Whether what we wait for is answered at once if something else is asked for."""
        return self.parked is not None and self._api is not None and self._api.gives_way

    @property
    def head_lacks(self) -> int:
        """How many bytes have to come until it is known what is asked for next."""
        return max(0, NEXT.size - self.tail_size)

    def keep(self, more: bytes) -> None:
        """These have come while we wait: they are kept until it is their turn."""
        kept = self.tail[: self.tail_size] if self.tail is not None else b""
        self.tail = bytearray(kept + more)
        self.tail_size = len(self.tail)

    def look_ahead(self, more: bytes) -> None:
        """These are the next bytes, as far as anything has come; none at all if the peer has hung up.

        Unless the same API is asked for, what we wait for gives way.  A client with two fetches under way would
        otherwise never wait again.
        """
        kept = bytes(self.tail[: min(self.tail_size, NEXT.size)]) if self.tail is not None else b""
        head = kept + more
        if self._api is not None and len(head) == NEXT.size and NEXT.unpack(head)[0] == self._api.request.api_key:
            return
        if self.parked is not None:
            self.parked.hurry()

    def unpark(self, now: float) -> None:
        """Queue the answers that are there by now, and go on with what was kept if that may be handled."""
        if self.parked is not None:
            answer = self.parked.take(now)
            if answer is None:
                return
            self.parked.close()
            self.parked = None
            if type(answer) is CoroutineType:
                self.later = answer
            else:
                self.out.extend(write_response(answer, *self._asked))  # type: ignore[arg-type]
        else:
            self._take_confirmed(now)
        if not self.takes_more and self.later is None:
            self.resume()

    def _take_confirmed(self, now: float) -> None:
        """In their order, those that are confirmed."""
        unconfirmed = self.unconfirmed
        while unconfirmed:
            parts, later, asked = unconfirmed[0]
            if later is not None:
                if not isinstance(later, Parked):
                    break
                answer = later.take(now)
                if answer is None:
                    break
                assert isinstance(answer, Response)
                later.close()
                parts = write_response(answer, *asked)
            self.out.extend(parts)
            unconfirmed.popleft()
        self.takes_more = self.takes_more and bool(unconfirmed)

    async def finish(self) -> None:
        """Wait for what was to be waited for, and queue the answer."""
        if self.unconfirmed:
            return await self._confirm()
        answer: Soon
        if self.later is not None:
            try:
                answer = await self.later
            finally:
                self.later = None
            if isinstance(answer, Parked):
                return self._park(answer)
        else:
            assert self.parked is not None
            try:
                answer = await waited(self.parked)
            finally:
                self.parked = None
        if answer is None:
            return
        if is_large(answer):
            self.out.extend(await trio.to_thread.run_sync(write_response, answer, *self._asked))
        else:
            self.out.extend(write_response(answer, *self._asked))

    async def _confirm(self) -> None:
        """Wait for the first of those that are done, and queue its answer with those behind it that are there."""
        first = self.unconfirmed[0]
        later = first.later
        answer = await waited(later) if isinstance(later, Parked) else None if later is None else await later
        self.unconfirmed.popleft()
        self.out.extend(first.parts if answer is None else write_response(answer, *first.asked))
        self._take_confirmed(trio.current_time())

    async def settle(
        self, finish: Callable[[], Awaitable[None]], send: Callable[[], Awaitable[None]], *, parks: bool = False
    ) -> None:
        """Finish, send, and go on with what was kept, until there is nothing more to wait for.

        `parks`: what is parked is waited for elsewhere.
        """
        while True:
            if self.out:
                await send()
            if self._must_finish(parks):
                await finish()
                await send()
            before = self.tail_size
            if before and not self.takes_more:
                await self._broker.turns.next()
            if not self.takes_more:  # else whoever receives goes on by himself
                self.resume()
            if not self._must_finish(parks) and not self.out and self.tail_size == before:
                return

    def close(self) -> None:
        """Nobody will wait any more."""
        for each in (self.later, self.parked, *(pending.later for pending in self.unconfirmed)):
            if each is not None:
                each.close()
        self.later = self.parked = None
        self.wake = nobody
        self.unconfirmed.clear()


def is_large(answer: Response) -> bool:
    """Whether there is a long list right in it."""
    fields = (getattr(answer, name) for name in answer.__struct_fields__)
    return any(isinstance(each, list) and len(each) > LARGE_ITEMS for each in fields)
