"""Our side of one connection's talk: requests become bytes, bytes become answers.  Knows nothing of sockets.

Answers come in the order of the requests: any number may be on their way.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from trilogue.client.errors import NotSpoken
from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.frame import API_VERSIONS, SIZE, Frames, read_response, write_request
from trilogue.wire.schema import Request, Response, Versions

ANSWER_BYTES_MAX = 1 << 30
"""Larger than any fetch that was ever asked for: more is not an answer but a mistake."""

GREETING_VERSION = 3
"""Of ApiVersions: the first that says who we are.  Brokers that lack it answer in version 0 (KIP-511)."""

S = TypeVar("S", bound=Response)


class Ticket(Generic[S]):
    """What an answer is waited for with."""

    __slots__ = ("correlation_id", "response", "version")

    def __init__(self, correlation_id: int, response: type[S], version: int) -> None:
        self.correlation_id, self.response, self.version = correlation_id, response, version


class Dialogue:
    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._frames = Frames(ANSWER_BYTES_MAX)
        self._asked = 0
        self._expected: dict[int, Ticket[Any]] = {}
        self._answers: dict[int, Response] = {}
        self._forgotten: set[int] = set()
        self.offered: Mapping[int, Versions] = {API_VERSIONS: Versions(0, GREETING_VERSION)}
        """By API, what the broker says it answers."""
        self._chosen: dict[tuple[type[Request], int | None], int] = {}
        """What `version` has answered, since we know what is offered."""

    def version(self, request: type[Request], cap: int | None = None) -> int:
        """The highest that both know, and the caller permits."""
        chosen = self._chosen.get((request, cap))
        if chosen is None:
            chosen = self._chosen[request, cap] = self._choose(request, cap)
        return chosen

    def _choose(self, request: type[Request], cap: int | None) -> int:
        offered = self.offered.get(request.api_key, Versions(1, 0))
        both = request.versions & offered
        if cap is not None:
            both &= Versions(0, cap)
        if not both:
            name = request.__name__.removesuffix("Request")
            ours = request.versions if cap is None else request.versions & Versions(0, cap)
            raise NotSpoken(f"the broker answers {name} in versions {offered}, we ask in {ours}")
        return both.last

    def ask(self, request: Request, response: type[S], cap: int | None = None) -> tuple[Ticket[S], list[Any]]:
        """What to wait with, and the bytes to send."""
        version = self.version(type(request), cap)
        self._asked += 1
        ticket = Ticket(self._asked, response, version)
        parts = write_request(request, version, ticket.correlation_id, self._client_id)
        self._expected[ticket.correlation_id] = ticket
        return ticket, parts

    def feed(self, data: bytes) -> None:
        """What has arrived."""
        for frame in self._frames.feed(data):
            view = memoryview(frame)
            correlation_id = SIZE.unpack_from(view)[0] if len(view) >= SIZE.size else None
            ticket = self._expected.pop(correlation_id, None) if correlation_id is not None else None
            if ticket is None:
                raise MalformedMessage(f"an answer to question {correlation_id}, which is not open", "response header")
            if ticket.correlation_id in self._forgotten:
                self._forgotten.remove(ticket.correlation_id)
            else:
                self._answers[ticket.correlation_id] = read_answer(view, ticket)

    def take(self, ticket: Ticket[S]) -> S | None:
        """The answer, if it has come."""
        answer = self._answers.pop(ticket.correlation_id, None)
        assert answer is None or isinstance(answer, ticket.response)
        return answer

    def forget(self, ticket: Ticket[Any]) -> None:
        """Nobody waits for it any more; when it comes, it is dropped."""
        if ticket.correlation_id in self._expected:
            self._forgotten.add(ticket.correlation_id)
        self._answers.pop(ticket.correlation_id, None)

    # -- the greeting --------------------------------------------------------------------------

    def greet(self, software: str, version: str) -> tuple[Ticket[ApiVersionsResponse], list[Any]]:
        request = ApiVersionsRequest(client_software_name=software, client_software_version=version)
        return self.ask(request, ApiVersionsResponse)

    def greeted(self, answer: ApiVersionsResponse) -> bool:
        """Learn what the broker speaks.  False if it has to be greeted again, in an older way."""
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and self.offered[API_VERSIONS].last > 0:
            self.offered = {API_VERSIONS: Versions(0, 0)}
            self._chosen.clear()
            return False
        check(answer.error_code)
        self._chosen.clear()
        self.offered = {each.api_key: Versions(each.min_version, each.max_version) for each in answer.api_keys}
        return True


def read_answer(view: memoryview, ticket: Ticket[Any]) -> Response:
    version = ticket.version
    if ticket.response is ApiVersionsResponse and view[SIZE.size : SIZE.size + 2] == UNSUPPORTED:
        version = 0  # whoever does not know the version we asked in answers in the oldest
    _, answer = read_response(view, ticket.response, version)
    assert isinstance(answer, Response)
    return answer


UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


def check(code: int, message: str | None = None) -> None:
    """Raise what an error code in an answer says."""
    if code == ErrorCode.NONE:
        return
    try:
        known = ErrorCode(code)  # type: ignore[call-arg]
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
        message = message or f"error code {code}, which we do not know"
    raise BrokerError(known, message or known.sentence)
