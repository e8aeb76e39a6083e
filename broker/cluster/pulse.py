"""Whether we may still answer from memory: not after we were stopped for so long that the store may have given us up.

A process that is stopped, by a signal, a hypervisor or the lid of a laptop, does not notice.  When it goes on, requests
that came meanwhile are there to be answered, and others may have been elected long ago.  What is written is safe by
itself, since nobody follows us any more; what coordinators know by heart may be old.  So they do not answer until the
store has been asked whether we are still registered as the image says.
"""

import logging

import trio

from trilogue.broker.cluster.image import broker_path
from trilogue.broker.cluster.store import UNREACHED
from trilogue.broker.cluster.view import View

logger = logging.getLogger(__name__)

BEATS = 4
"""So often within the time that the store waits for us."""

DOUBT = 0.5
"""After this part of it without a beat the store may have given us up: it heard from us a third of it before."""

AGAIN_SECONDS = 0.05


class Pulse:
    def __init__(self, view: View, node_id: int) -> None:
        self._view, self._node_id = view, node_id
        self._beat_at = trio.current_time()

    @property
    def sure(self) -> bool:
        timeout = self._view.session.timeout_seconds
        return not timeout or trio.current_time() - self._beat_at < timeout * DOUBT

    async def run(self) -> None:
        """Never ends."""
        while True:
            if not self.sure:
                logger.warning("stopped for %.1f s: asking the store", trio.current_time() - self._beat_at)
                await self._until_known()
            self._beat_at = trio.current_time()
            await trio.sleep(self._view.session.timeout_seconds / BEATS or 1)

    async def _until_known(self) -> None:
        """That the store has not given us up; or that it has, and what has become of the cluster since."""
        while True:
            try:
                node = await self._view.session.read(broker_path(self._node_id))
            except UNREACHED:
                node = None
            me = self._view.image.brokers.get(self._node_id)
            if node is not None and me is not None and node.created == me.epoch:
                return
            await trio.sleep(AGAIN_SECONDS)
