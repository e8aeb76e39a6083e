"""A broker's own view of the cluster: follows the store, and tells those who wait for something to be so."""

import logging
from collections.abc import Callable

import trio

from trilogue.broker.cluster.image import Image
from trilogue.broker.cluster.store import UNREACHED, Session

logger = logging.getLogger(__name__)

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
        self._begun = self._read = 0
        """Readings of what has changed: how many were begun, and which was the last to become an image."""

    def listen(self, listener: Callable[[Image, Image], None]) -> None:
        """Call it with every two consecutive images, the old and the new, without a task switch in between."""
        self._listeners.append(listener)

    async def load(self) -> None:
        """Read everything there is."""
        self._take(Image().apply(await self.session.tree()))

    async def follow(self) -> None:
        """Never ends: reads again what has changed."""
        unread: set[str] = set()
        while True:
            unread |= await self.session.changed()
            self._begun += 1
            try:
                nodes = await self.session.read_all(sorted(unread))
            except UNREACHED as trouble:
                logger.warning("we go on with what we know: %s", trouble)
                continue  # when the store is there again, it announces what we have missed
            unread.clear()
            if len(nodes) > MANY_NODES:
                image = await trio.to_thread.run_sync(self.image.apply, nodes)
            else:
                image = self.image.apply(nodes)
            self._read = self._begun
            self._take(image)

    async def until(self, condition: Callable[[Image], bool]) -> None:
        """Return when the image is so."""
        while not condition(self.image):
            await self._moved.wait()

    async def shows_what_was_announced(self) -> None:
        """Return when what the store has announced until now is in the image, and so our own last commit."""
        wanted = self._begun + (1 if self.session.has_news else 0)
        while self._read < wanted:
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
