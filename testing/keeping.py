"""A trio loop in a thread of its own, for callers that have none: what lives in it, and how it is asked.

Whatever is kept exists only while it lives: who has it can use it.
"""

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Generic, NoReturn, TypeVar

import trio

T = TypeVar("T")
R = TypeVar("R")


class NotRunning(RuntimeError):
    """It has not been started yet, or is gone already; the message says what to do."""


class Kept(Generic[T]):
    """Made by `keep`."""

    def __init__(self, thread: threading.Thread, ended: "Future[None]", inside: "Inside[T]") -> None:
        self._thread, self._ended, self._inside = thread, ended, inside
        self.it = inside.it

    def ask(self, work: Callable[[], Awaitable[R]]) -> R:
        """What that answers in the loop; waits for it."""
        try:
            return trio.from_thread.run(work, trio_token=self._inside.token)
        except trio.RunFinishedError:
            self._say_why()

    def do(self, work: Callable[[], R]) -> R:
        """The same, of what does not wait itself."""
        try:
            return trio.from_thread.run_sync(work, trio_token=self._inside.token)
        except trio.RunFinishedError:
            self._say_why()

    def _say_why(self) -> NoReturn:
        problem = self._ended.exception()
        raise NotRunning(f"it has ended by itself: {problem!r}") from problem

    def end(self) -> None:
        """Let it end, and wait for that.  Raises what it has died of."""
        with suppress(trio.RunFinishedError):  # then the reason is raised below
            trio.from_thread.run_sync(self._inside.done.set, trio_token=self._inside.token)
        self._thread.join()
        self._ended.result()


class Inside(Generic[T]):
    """What the thread hands out when it is up."""

    def __init__(self, it: T) -> None:
        self.it, self.token, self.done = it, trio.lowlevel.current_trio_token(), trio.Event()


def keep(name: str, live: Callable[[], AbstractAsyncContextManager[T]]) -> Kept[T]:
    """Enter that in a thread of this name, and wait until it is up.  Raises what it raises."""
    begun: Future[Inside[T]] = Future()
    ended: Future[None] = Future()

    async def inside() -> None:
        async with live() as it:
            here = Inside(it)
            begun.set_result(here)
            await here.done.wait()

    def run() -> None:
        try:
            trio.run(inside)
        except BaseException as problem:
            ended.set_exception(problem)
            if not begun.done():
                begun.set_exception(problem)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        return Kept(thread, ended, begun.result())
    except BaseException:
        if begun.done():  # otherwise we were interrupted, and it still comes up
            thread.join()
        raise
