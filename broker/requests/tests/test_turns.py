"""Long work in pieces: everybody else has a turn between two of them, and they come one at a time."""

import inspect

import trio

from trilogue.broker.requests import turns as module
from trilogue.broker.requests.turns import Turns


def test_what_is_short_is_there_at_once():
    assert Turns().each(range(5), lambda number: number * 2, sum) == 20


def test_what_is_long_comes_later_and_whole(monkeypatch):
    monkeypatch.setattr(module, "PIECE_SECONDS", 0.0)
    answer = Turns().each(range(100), lambda number: number * 2, sum)

    assert inspect.iscoroutine(answer)
    assert trio.run(lambda: answer) == 9900


def test_others_have_a_turn_between_two_pieces_however_many_wait(monkeypatch):
    """Ten are to do ten pieces each.  Whoever looks in every turn never sees more than one of them done since."""
    monkeypatch.setattr(module, "PIECE_SECONDS", 0.0)
    done = [0]

    def piece(_):
        done[0] += 1

    async def main():
        turns = Turns()
        seen = [0]
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                answer = turns.each(range(10), piece, len)
                nursery.start_soon(lambda answer=answer: answer)
            seen[0] = done[0]
            while done[0] < 100:
                await trio.lowlevel.checkpoint()
                assert done[0] - seen[0] <= 1
                seen[0] = done[0]

    trio.run(main)
