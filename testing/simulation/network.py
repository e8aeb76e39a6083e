"""A network of hosts: connections that keep the order of what is sent over each, and nothing else.

Every piece of data is on its way for a while of its own, so of two connections either may be the quicker.  A direction
between two hosts can be cut: what is sent stays where it is until that is healed, as TCP goes on trying.  It can be
slow.  A connection can be lost, and what is on its way with it.  A host whose process dies resets its connections,
unless it went down itself: then nobody hears of that before it is back.
"""

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from trilogue.client.errors import CannotConnect, ConnectionLost, TimedOut
from trilogue.client.tasks import QuickLock
from trilogue.client.world import Address, Lock, Wire
from trilogue.testing.simulation.agenda import Agenda
from trilogue.testing.simulation.lives import Life

DELAY_SECONDS = 0.0004
LATE, LATE_TIMES = 0.02, 30
"""So often something takes so many times longer."""

SPLIT = 0.02
"""So often data comes in two parts."""

REFUSED_SECONDS = 0.001

Direction = tuple[str, str]


class End:
    """One side of a connection."""

    __slots__ = ("_reader", "arrives", "closed", "held", "inbox", "life", "network", "other", "over", "told")

    def __init__(self, network: "Network", life: Life) -> None:
        self.network, self.life = network, life
        self.other: End
        self.inbox: deque[bytes] = deque()
        self.over: str | None = None
        """"ended" or "reset", as heard from the other side."""
        self.closed = False
        self.arrives = 0.0
        """When what was sent last arrives: nothing overtakes it."""
        self.held: deque[bytes | str] = deque()
        """What waits on our side for the way to be healed."""
        self.told: Callable[[], None] | None = None
        """Called when there is something to read, for one who has no task that waits for it."""
        self._reader: trio.lowlevel.Task | None = None

    def send(self, data: bytes) -> None:
        if self.closed:
            raise trio.ClosedResourceError
        if self.over == "reset":
            raise ConnectionResetError(104, "Connection reset by peer")
        if self.life.alive:
            self.network.send(self, data)

    async def readable(self) -> None:
        """Returns when there is something to read, or will never be."""
        while not self.inbox and self.over is None:
            if self.closed:
                raise trio.ClosedResourceError

            def give_up(_: object) -> trio.lowlevel.Abort:
                self._reader = None
                return trio.lowlevel.Abort.SUCCEEDED

            assert self._reader is None, "two read from one connection"
            self._reader = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(give_up)
        if self.over == "reset" and not self.inbox:
            raise ConnectionResetError(104, "Connection reset by peer")

    def hear(self, what: bytes | str) -> None:
        if self.closed:
            return
        if isinstance(what, bytes):
            self.inbox.append(what)
        else:
            self.over = what
        self.stir()

    def receive_into(self, buffer: memoryview) -> int:
        """What there is; nothing if there is nothing."""
        if not self.inbox:
            if self.over == "reset":
                raise ConnectionResetError(104, "Connection reset by peer")
            return 0
        data = self.inbox.popleft()
        if len(data) > len(buffer):
            self.inbox.appendleft(data[len(buffer) :])
            data = data[: len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def stir(self) -> None:
        if self.told is not None:
            self.told()
        if self._reader is not None:
            task, self._reader = self._reader, None
            trio.lowlevel.reschedule(task)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.stir()
            if self.life.alive and self.over is None:
                self.network.send(self, "ended")
            self.network.forget(self)


class Network:
    def __init__(self, agenda: Agenda, chance: random.Random) -> None:
        self._agenda, self._chance = agenda, chance
        self._doors: dict[Address, tuple[Life, Callable[[End], None]]] = {}
        self._ends: dict[End, None] = {}
        self._cut: dict[Direction, int] = {}
        """How many faults cut it now."""
        self._slow: dict[Direction, list[float]] = {}
        self.bytes = self.pieces = 0

    # -- connections ---------------------------------------------------------------------------

    def listen(self, life: Life, address: Address, welcome: Callable[[End], None]) -> None:
        self._doors[address] = life, welcome

    def stop_listening(self, address: Address) -> None:
        self._doors.pop(address, None)

    async def dial(self, life: Life, address: Address, deadline: float) -> End:
        """Who is dialled is named by the host alone: `broker-1`."""
        there, back = (life.host, address.host), (address.host, life.host)
        with trio.move_on_at(deadline):
            await trio.sleep(self._delay(there, 0))
            while there in self._cut or back in self._cut:  # noqa: ASYNC110  it is time that is simulated
                await trio.sleep(0.2)  # a lost SYN is sent again
            await trio.sleep(self._delay(back, 0))
            door = self._doors.get(address)
            if door is None or not door[0].alive:
                await trio.sleep(REFUSED_SECONDS)
                raise CannotConnect(f"nobody answers at {address}: Connection refused")
            mine, theirs = End(self, life), End(self, door[0])
            mine.other, theirs.other = theirs, mine
            self._ends[mine] = self._ends[theirs] = None
            door[1](theirs)
            return mine
        raise CannotConnect(f"nobody answers at {address} in time")

    def forget(self, end: End) -> None:
        if not end.held:
            self._ends.pop(end, None)

    def send(self, end: End, what: bytes | str) -> None:
        self.pieces += 1
        if isinstance(what, bytes):
            self.bytes += len(what)
            if len(what) > 1 and self._chance.random() < SPLIT:
                at = self._chance.randrange(1, len(what))
                self._begin(end, what[:at])
                what = what[at:]
        self._begin(end, what)

    def _begin(self, end: End, what: bytes | str) -> None:
        way = (end.life.host, end.other.life.host)
        if end.held or way in self._cut:
            end.held.append(what)
            return
        end.arrives = max(end.arrives, self._agenda.now + self._delay(way, len(what)))
        self._agenda.at(end.arrives, partial(self._arrive, end, way, what))

    def _arrive(self, end: End, way: Direction, what: bytes | str) -> None:
        if end.over == "reset":
            return  # it was lost on its way
        if end.held or way in self._cut:  # since it was sent
            end.held.append(what)
            return
        end.other.hear(what)

    def _delay(self, way: Direction, size: int) -> float:
        seconds = DELAY_SECONDS * (0.5 + self._chance.random())
        if self._chance.random() < LATE:
            seconds *= LATE_TIMES * self._chance.random()
        factor = max(self._slow.get(way, ()), default=0.0)
        return seconds * factor + size * factor / 1e8 if factor else seconds

    # -- what goes wrong -----------------------------------------------------------------------

    def cut(self, *ways: Direction) -> None:
        for way in ways:
            self._cut[way] = self._cut.get(way, 0) + 1

    def heal(self, *ways: Direction) -> None:
        for way in ways:
            self._cut[way] -= 1
            if not self._cut[way]:
                del self._cut[way]
                for end in [each for each in self._ends if each.held and (each.life.host, each.other.life.host) == way]:
                    waiting, end.held = end.held, deque()
                    for what in waiting:
                        self._begin(end, what)
                    if end.closed:
                        self.forget(end)

    def slow(self, way: Direction, factor: float) -> None:
        self._slow.setdefault(way, []).append(factor)

    def quick(self, way: Direction, factor: float) -> None:
        self._slow[way].remove(factor)

    def is_cut(self, one: str, other: str) -> bool:
        return (one, other) in self._cut or (other, one) in self._cut

    def lose(self, one: str, other: str, chance: random.Random) -> int:
        """Some connections between the two, with all that is on its way; how many."""
        there = [
            each for each in self._ends if each.life.host == one and each.other.life.host == other and not each.closed
        ]
        lost = [each for each in there if chance.random() < 0.7]
        for end in lost:
            self._break(end)
        return len(lost)

    def _break(self, end: End) -> None:
        for side in (end, end.other):
            side.held.clear()
            self._ends.pop(side, None)
            side.hear("reset")
        end.over = end.other.over = "reset"

    def die(self, life: Life, *, silently: bool) -> None:
        """The process is gone.  If the host is, too, nobody is told: `wake` tells them when it is back."""
        for address in [each for each, door in self._doors.items() if door[0] is life]:
            del self._doors[address]
        for end in [each for each in self._ends if each.life is life]:
            end.inbox.clear()
            end.held.clear()
            end.closed = True
            end.stir()
            if not silently:
                self._begin(end, "reset")
                self._ends.pop(end, None)

    def wake(self, host: str) -> None:
        """It is back, and resets what it knows nothing of."""
        for end in [each for each in self._ends if each.life.host == host and not each.life.alive]:
            self._ends.pop(end)
            self._begin(end, "reset")


# -- for those who connect -----------------------------------------------------------------------


class NetworkWire:
    """See `client.world.Wire`."""

    def __init__(self, end: End, address: Address) -> None:
        self._end, self._address = end, address
        self.sending: Lock = QuickLock()
        self.receiving: Lock = QuickLock()

    async def send(self, parts: list[Any], deadline: float) -> None:
        try:
            self._end.send(b"".join(parts))
        except (OSError, trio.ClosedResourceError) as error:
            raise ConnectionLost(f"{self._address}: {error}") from None

    async def receive(self, deadline: float) -> bytes:
        try:
            with trio.CancelScope(deadline=deadline) as scope:
                await self._end.readable()
            if scope.cancelled_caught:
                raise TimedOut(f"{self._address} has not answered in time")
        except (OSError, trio.ClosedResourceError) as error:
            raise ConnectionLost(f"{self._address}: {error}") from None
        return self._end.inbox.popleft() if self._end.inbox else b""

    def close(self) -> None:
        self._end.close()


class NetworkWorld:
    """See `client.world.World`: what a client or a broker has of all this."""

    def __init__(self, network: Network, life: Life) -> None:
        self._network, self._life = network, life

    def now(self) -> float:
        return trio.current_time()

    async def pause(self, seconds: float) -> None:
        await trio.sleep(max(0.0, seconds))

    async def dial(self, address: Address, deadline: float) -> Wire:
        return NetworkWire(await self._network.dial(self._life, address, deadline), address)
