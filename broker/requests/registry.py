"""Which requests this broker answers, and with what.

A handler is a plain function that returns its answer.  One that has to wait returns a coroutine instead, and its
connection waits with it.  None is no answer at all.  ApiVersions is derived from what is registered here.
"""

from collections.abc import Callable, Coroutine
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trilogue.wire.produce_templates import ProduceTemplate
from trilogue.wire.schema import Request, Response, Versions

if TYPE_CHECKING:
    from trilogue.broker.broker import Broker
    from trilogue.broker.requests.peer import Peer

Answer = Response | None | Coroutine[Any, Any, Response | None]
Q = TypeVar("Q", bound=Request)
Handler = Callable[["Broker", Any, "Peer"], Answer]
Again = Callable[["Broker", ProduceTemplate, int, "Peer"], Answer | bytearray]


class Api(NamedTuple):
    request: type[Request]
    versions: Versions
    """What we offer: may be less than what we can read."""
    handler: Handler
    advertised: Versions
    numbers: range
    """`versions`, for the one who asks with every request."""
    again: Again | None
    """Handles what has become a template; answers in bytes if all goes well."""


APIS: dict[int, Api] = {}


def handles(
    request: type[Q], versions: str | None = None, *, advertised: str | None = None, again: Again | None = None
) -> Callable[[Callable[["Broker", Q, "Peer"], Answer]], Callable[["Broker", Q, "Peer"], Answer]]:
    """Answer this request, in all the versions we can read unless told otherwise.

    `advertised` is what we say we answer, where that differs: Kafka tells one such lie, about Produce.
    """
    offered = Versions.parse(versions) if versions else request.versions

    def register(handler: Callable[["Broker", Q, "Peer"], Answer]) -> Callable[["Broker", Q, "Peer"], Answer]:
        assert request.api_key not in APIS, f"{request.__name__} has two handlers"
        said = Versions.parse(advertised) if advertised else offered
        APIS[request.api_key] = Api(request, offered, handler, said, range(offered.first, offered.last + 1), again)
        return handler

    return register


def load() -> None:
    """Import every module of `apis/`: putting a file there is all it takes."""
    package = import_module("trilogue.broker.apis")
    for module in iter_modules(package.__path__):
        import_module(f"trilogue.broker.apis.{module.name}")
