"""A broker's own view of the cluster: follows the store, and tells those who wait for something to be so."""

from collections.abc import Callable

import trio

from trilogue.broker.cluster.image import Image
from trilogue.broker.cluster.store import Session

MANY_NODES = 1000
"""To read more than these holds the loop for too long: a thread does it, and the loop has turns in between."""


class View:
    """Holds the newest image this broker has.  `image` is replaced, never changed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.image = Image()
        self.changes = 0
        """How many images we have had."""
        self._listeners: list[Callable[[Image, Image], None]] = []
        self._moved = trio.Event()

    def listen(self, listener: Callable[[Image, Image], None]) -> None:
        """Call it with every two consecutive images, the old and the new, without a task switch in between."""
        self._listeners.append(listener)

    async def load(self) -> None:
        """Read everything there is."""
        self._take(Image().apply(await self.session.tree()))

    async def follow(self) -> None:
        """Never ends: reads again what has changed."""
        while True:
            paths = await self.session.changed()
            nodes = await self.session.read_all(sorted(paths))
            if len(nodes) > MANY_NODES:
                self._take(await trio.to_thread.run_sync(self.image.apply, nodes))
            else:
                self._take(self.image.apply(nodes))

    async def until(self, condition: Callable[[Image], bool]) -> None:
        """Return when the image is so."""
        while not condition(self.image):
            await self._moved.wait()

    async def newer_than(self, seen: Image) -> None:
        """Return when there is another image than this one."""
        while self.image is seen:
            await self._moved.wait()

    def _take(self, image: Image) -> None:
        before, self.image = self.image, image
        self.changes += 1
        for listener in self._listeners:
            listener(before, image)
        self._moved.set()
        self._moved = trio.Event()
