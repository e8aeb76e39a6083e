"""Which requests this broker answers, and with what.

A handler is a plain function that returns its answer.  One that has to wait returns a coroutine instead, and its
connection waits with it; what waits for other requests is parked.  None is no answer at all.  ApiVersions is derived
from what is registered here, and so is what connections know of APIs: they know none by name.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, Protocol, TypeVar

from trilogue.broker.broker import Broker
from trilogue.broker.requests.later import Later, Parked, Unconfirmed
from trilogue.broker.requests.peer import Peer
from trilogue.wire.frame import Header
from trilogue.wire.schema import Request, Response, Versions

Soon = Response | None | Parked[Response | None]
Answer = Soon | Later[Soon] | Unconfirmed[Response | None]
Q = TypeVar("Q", bound=Request)
Handler = Callable[[Broker, Any, Peer], Answer]


class Template(Protocol):
    """A request without what differs when it comes again."""

    version: int
    client_id: str | None


class Templates(Protocol):
    """Those of one connection."""

    def recall(self, frame: memoryview) -> tuple[Any, int] | None:
        """The template that this frame fills, and its correlation id."""

    def learn(self, frame: memoryview, header: Header, request: Any) -> None:
        """Remember a request that was read from this frame, if it is of the kind that comes again."""


class Repeats(NamedTuple):
    """How an API is answered whose requests come again and again, almost the same."""

    templates: Callable[[], Templates]
    handler: Callable[[Broker, Any, int, Peer], Answer | bytearray]
    """Is given the template and the correlation id; answers in bytes if all goes well."""


class Api(NamedTuple):
    request: type[Request]
    versions: Versions
    """What we offer: may be less than what we can read."""
    handler: Handler
    advertised: Versions
    numbers: range
    """`versions`, for the one who asks with every request."""
    repeats: Repeats | None
    gives_way: bool
    """While it waits, it is answered at once if its connection asks for something else."""


APIS: dict[int, Api] = {}


def handles(
    request: type[Q],
    versions: str | None = None,
    *,
    advertised: str | None = None,
    repeats: Repeats | None = None,
    gives_way: bool = False,
) -> Callable[[Callable[[Broker, Q, Peer], Answer]], Callable[[Broker, Q, Peer], Answer]]:
    """Answer this request, in all the versions we can read unless told otherwise.

    `advertised` is what we say we answer, where that differs: Kafka tells one such lie, about Produce.
    """
    offered = Versions.parse(versions) if versions else request.versions

    def register(handler: Callable[[Broker, Q, Peer], Answer]) -> Callable[[Broker, Q, Peer], Answer]:
        assert request.api_key not in APIS, f"{request.__name__} has two handlers"
        said = Versions.parse(advertised) if advertised else offered
        numbers = range(offered.first, offered.last + 1)
        APIS[request.api_key] = Api(request, offered, handler, said, numbers, repeats, gives_way)
        return handler

    return register


def load() -> None:
    """Import every module of `apis/`: putting a file there is all it takes."""
    package = import_module("trilogue.broker.apis")
    for module in iter_modules(package.__path__):
        import_module(f"trilogue.broker.apis.{module.name}")
