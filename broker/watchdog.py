"""Says who holds the loop: one line when it has not turned for a while, with the request, the client and the stack.

A thread asks it for a sign of life now and then.  What it was doing is read from its stack, so requests need not be
written down while all is well.

A store hears from us as long as any thread of ours can speak.  If the loop does not turn for half of the time that the
store would wait for us, the watchdog gives the session up, so that others can do what we no longer do.
"""

import logging
import sys
import threading
import traceback
from time import monotonic
from types import FrameType

import trio

from trilogue.broker.cluster.store import Session
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Api

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
STUCK_SECONDS = 0.2
"""A loop that has not turned for so long is held by somebody."""

HANDLERS = "trilogue.broker.apis."
FRAMES = 12
"""So much of the stack is said, the innermost."""


class Watchdog:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._answered = True
        """The loop has turned since it was asked to."""

    async def run(self) -> None:
        """Never ends; the thread does, with it."""
        ended = threading.Event()
        given = (trio.lowlevel.current_trio_token(), threading.get_ident(), ended)
        threading.Thread(target=self._watch, args=given, name="watchdog", daemon=True).start()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    def _answer(self) -> None:
        self._answered = True

    def _watch(self, token: trio.lowlevel.TrioToken, loop: int, ended: threading.Event) -> None:
        asked = looked = monotonic()
        said = given_up = False
        while not ended.wait(LOOK_SECONDS):
            before, looked = looked, monotonic()
            if self._answered:
                self._answered, asked, said, given_up = False, looked, False, False
                try:
                    token.run_sync_soon(self._answer)
                except trio.RunFinishedError:
                    return
            # If we are late ourselves, the machine was busy or asleep; and once is enough for each time.
            elif looked - asked > STUCK_SECONDS and looked - before < STUCK_SECONDS:
                if not said:
                    said = True
                    where = told(sys._current_frames().get(loop))
                    logger.warning("the loop has not turned for %d ms: %s", (looked - asked) * 1000, where)
                if not given_up and 0 < self._session.timeout_seconds / 2 < looked - asked:
                    given_up = True
                    logger.error("the loop has not turned for %.1f s: our session is given up", looked - asked)
                    threading.Thread(target=self._session.abandon, name="giving up", daemon=True).start()


def told(frame: FrameType | None) -> str:
    """Who asks for what, and where we are with it."""
    stack = traceback.extract_stack(frame)[-FRAMES:] if frame is not None else []
    asked, whose = "", ""
    while frame is not None:
        match frame.f_locals:
            case {"api": Api() as api}:
                asked = api.request.__name__
            case {"peer": Peer() as peer}:
                whose = f"of {peer}, client id {peer.client_id!r}; "
                module = frame.f_globals["__name__"]
                asked = module.rpartition(".")[2] if module.startswith(HANDLERS) else asked
        frame = frame.f_back
    where = " > ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno} {each.name}" for each in stack)
    return f"{asked or 'a request'} {whose}{where}" if whose else where
