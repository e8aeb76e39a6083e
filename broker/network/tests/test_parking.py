"""Those whose answers are parked are served when they are woken, or when their time is over."""

from collections.abc import Awaitable, Callable
from math import inf

import pytest
import trio
import trio.testing

from trilogue.broker.network.parking import Parking


class Somebody:
    def __init__(self, deadline: float = inf) -> None:
        self.woken, self.looked_at, self.deadline = False, inf, deadline


Story = Callable[[Parking[Somebody], list[tuple[float, Somebody]]], Awaitable[None]]


def tell(story: Story) -> None:
    """With a clock that is 0 at the beginning, and jumps to whatever is waited for."""

    async def main() -> None:
        served: list[tuple[float, Somebody]] = []

        def serve() -> None:
            while parking.woken:
                served.append((trio.current_time(), parking.next_woken()))

        parking: Parking[Somebody] = Parking(serve)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(parking.run)
            await story(parking, served)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_whoever_is_woken_while_the_gate_serves_is_left_to_it():
    async def story(parking, served):
        one = Somebody()
        parking.open = True
        parking.wake(one)
        parking.wake(one)
        await trio.sleep(1)
        assert served == []
        assert list(parking.woken) == [one]
        assert parking.next_woken() is one
        assert not one.woken

    tell(story)


def test_whoever_is_woken_by_others_is_served_at_once():
    async def story(parking, served):
        one = Somebody()
        await trio.sleep(1)
        parking.wake(one)
        await trio.sleep(1)
        assert served == [(1, one)]

    tell(story)


def test_everybody_is_served_when_his_time_is_over():
    async def story(parking, served):
        late, early, never = Somebody(3), Somebody(2), Somebody()
        for each in (late, never, early):
            parking.expect(each)
        await trio.sleep(10)
        assert served == [(2, early), (3, late)]

    tell(story)


@pytest.mark.parametrize(("then", "when"), [(9, 9), (2, 2), (inf, None)])
def test_a_deadline_may_become_another(then: float, when: float | None):
    async def story(parking, served):
        one = Somebody(5)
        parking.expect(one)
        one.deadline = then
        if then != inf:
            parking.expect(one)
        await trio.sleep(20)
        assert served == ([] if when is None else [(when, one)])

    tell(story)


def test_a_guest_is_noted_once_however_often_it_waits():
    async def story(parking, served):
        one = Somebody()
        for number in range(100):
            one.deadline = 5 + number
            parking.expect(one)
        assert len(parking._deadlines) == 1
        await trio.sleep(200)
        assert served == [(104, one)]

    tell(story)
