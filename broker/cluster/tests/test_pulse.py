"""Who was stopped for so long that the store may have given it up asks before it speaks."""

from types import SimpleNamespace
from typing import Any

import trio
import trio.testing

from trilogue.broker.cluster.image import BrokerInfo, Image, broker_path
from trilogue.broker.cluster.pulse import Pulse
from trilogue.broker.cluster.store import Node, Unavailable
from trilogue.broker.cluster.view import View

ME = 1


class Session:
    """Of a store that waits four seconds for us, and knows this registration of ours."""

    timeout_seconds = 4.0

    def __init__(self) -> None:
        self.registered: int | None = 7
        self.away = False
        self.asked = 0

    async def read(self, path: str) -> Node | None:
        assert path == broker_path(ME)
        self.asked += 1
        await trio.lowlevel.checkpoint()
        if self.away:
            raise Unavailable
        return None if self.registered is None else Node(b"", 0, self.registered, ephemeral=True)


def told(story: Any) -> None:
    async def main() -> None:
        clock, session = trio.lowlevel.current_clock(), Session()
        view = View(session)  # type: ignore[arg-type]
        view.image = image(7)
        pulse = Pulse(view, ME)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pulse.run)
            await trio.testing.wait_all_tasks_blocked()
            await story(SimpleNamespace(clock=clock, session=session, view=view, pulse=pulse))
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def image(epoch: int) -> Image:
    return Image(brokers={ME: BrokerInfo(ME, (), None, epoch)})


def test_as_long_as_it_beats_nobody_is_asked():
    async def story(at: Any) -> None:
        for _ in range(100):
            await trio.sleep(0.5)
            assert at.pulse.sure
        assert at.session.asked == 0

    told(story)


def test_after_a_stop_it_is_not_sure_before_the_store_has_confirmed():
    async def story(at: Any) -> None:
        at.clock.jump(0.9)
        assert at.pulse.sure
        at.clock.jump(1.1)
        assert not at.pulse.sure  # and no task has run since
        await trio.sleep(0.01)
        assert (at.pulse.sure, at.session.asked) == (True, 1)

    told(story)


def test_who_was_given_up_is_sure_when_it_has_registered_again_and_knows_of_it():
    async def story(at: Any) -> None:
        at.session.registered = None
        at.clock.jump(5)
        await trio.sleep(1)
        assert not at.pulse.sure
        at.session.away = True
        await trio.sleep(1)
        assert not at.pulse.sure
        at.session.away, at.session.registered = False, 9
        await trio.sleep(1)
        assert not at.pulse.sure  # the image is still the one of before
        at.view.image = image(9)
        await trio.sleep(0.1)
        assert at.pulse.sure

    told(story)
