"""Every message there is, found by looking into `apis/` and `internal/`.

For tools and tests.  The broker names the messages it handles and loads no others.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from trilogue.wire.schema import Body, Data, Key, Request, Response, Value

ABSTRACT = (Body, Request, Response, Data, Key, Value)


@cache
def everything() -> list[type[Body]]:
    """All requests, responses and data, by name."""
    found = set()
    for folder in ("trilogue.wire.apis", "trilogue.wire.internal"):
        for module in iter_modules(import_module(folder).__path__, folder + "."):
            for it in vars(import_module(module.name)).values():
                if isinstance(it, type) and issubclass(it, Body) and it not in ABSTRACT:
                    found.add(it)
    return sorted(found, key=lambda it: it.__name__)


@cache
def requests() -> dict[int, type[Request]]:
    return {it.api_key: it for it in everything() if issubclass(it, Request)}


@cache
def responses() -> dict[int, type[Response]]:
    return {it.api_key: it for it in everything() if issubclass(it, Response)}
