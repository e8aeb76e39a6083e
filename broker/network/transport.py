"""The two ways of serving connections, and which of them is used: `trilogue.transport`, or $TRILOGUE_TRANSPORT."""

import os
import select
from collections.abc import Callable
from typing import Protocol

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.guests import Watched
from trilogue.broker.network.listeners import CannotStart, Listener
from trilogue.broker.requests.peer import Peer

SETTING, VARIABLE = "trilogue.transport", "TRILOGUE_TRANSPORT"
AUTO, GATE, TASKS = "auto", "gate", "tasks"


class Transport(Protocol):
    def add(self, listener: Listener) -> None:
        """Connections of this one are served, too."""
        ...

    async def run(self) -> None:
        """Let clients in and serve them."""
        ...

    async def sweep(self) -> None:
        """Never ends: closes connections that have been silent for too long."""
        ...

    def serve_with(self, watched: Watched) -> None:
        """See `Guests`."""
        ...

    def hang_up(self, which: Callable[[Peer], bool]) -> None:
        """See `Guests`."""
        ...

    def stop_listening(self) -> None:
        """Nobody comes any more; those who wait for an answer get it."""
        ...

    def close(self) -> None:
        """Everybody goes."""
        ...


def open_transport(broker: Broker, nursery: trio.Nursery) -> Transport:
    """What it does in tasks of their own lives in the nursery, until it is told to stop listening."""
    there = GATE if hasattr(select, "epoll") else TASKS
    wanted = os.environ.get(VARIABLE) or broker.config[SETTING]
    if wanted == AUTO:
        wanted = there
    if wanted == GATE:
        if there != GATE:
            raise CannotStart(f"{SETTING}={GATE}: this system has no epoll; leave it at {AUTO}")
        from trilogue.broker.network.gate import Gate

        return Gate(broker, nursery)
    if wanted == TASKS:
        from trilogue.broker.network.tasks import Tasks

        return Tasks(broker, nursery)
    raise CannotStart(f"{VARIABLE}={wanted}: choose {AUTO}, {GATE} or {TASKS}")
