"""A loop in a thread: up, asked, ended, and what is heard of one that has died."""

from contextlib import asynccontextmanager

import pytest
import trio

from trilogue.testing.keeping import NotRunning, keep


def test_what_is_kept_is_asked_in_its_own_loop():
    left = []

    @asynccontextmanager
    async def live():
        yield "here"
        left.append(trio.current_time())

    async def answer():
        await trio.lowlevel.checkpoint()
        return trio.current_time()

    kept = keep("test", live)
    assert kept.it == "here"
    assert kept.do(trio.current_time) <= kept.ask(answer)
    kept.end()
    assert len(left) == 1


def test_what_cannot_begin_says_why():
    @asynccontextmanager
    async def live():
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        keep("test", live)


def test_what_has_died_says_why_to_whoever_asks_and_when_it_is_ended():
    @asynccontextmanager
    async def live():
        async with trio.open_nursery() as nursery:
            fails = trio.Event()

            async def fail():
                await fails.wait()
                raise ZeroDivisionError

            nursery.start_soon(fail)
            yield fails

    kept = keep("test", live)
    kept.do(kept.it.set)
    kept._thread.join(10)

    with pytest.raises(NotRunning, match=r"ended by itself.*ZeroDivisionError"):
        kept.do(trio.current_time)
    with pytest.raises(ExceptionGroup) as raised:
        kept.end()
    assert raised.group_contains(ZeroDivisionError)
