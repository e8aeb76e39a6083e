"""Faults for clients in other languages: a broker of its own process is told of them by connections from this machine.

A line of JSON says what to do, and a line answers; `trilogue faults` speaks it, and so may anybody:

    {"do": "add", "api": "Produce", "topic": "orders", "nth": 3, "what": "answer", "value": "NOT_ENOUGH_REPLICAS"}
    {"faults": [{"number": 1, "says": "Produce topic=orders nth=3: answer NOT_ENOUGH_REPLICAS", "seen": 0, "fired": 0}]}

`do` is add, list, remove (with `number`) or clear.  An answer has `faults`, those that were asked for, or `error`.
Whoever says anything else is hung up on: a browser on this machine, say, that was sent here.
"""

import json
import logging
from typing import Any, NamedTuple

import trio

from trilogue.broker.server import Server
from trilogue.testing.faults.fault import Fault, On
from trilogue.testing.faults.faults import Faults
from trilogue.testing.history import History
from trilogue.testing.watching import Watch

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
"""Nobody else's machine: there is no password."""

LINE_BYTES_MAX = 16 << 10
IDLE_SECONDS = 60.0
"""Who has nothing to say for so long may come again."""

SELECTORS = ("topic", "partition", "group", "transactional_id", "client_id", "nth", "times", "probability", "seed")
WHAT = ("answer", "delay", "drop", "close", "corrupt")


class NotUnderstood(ValueError):
    """It is not what this is for."""


class Told(NamedTuple):
    """Of a fault, to whoever asks."""

    number: int
    says: str
    seen: int
    fired: int

    @classmethod
    def of(cls, fault: Fault) -> "Told":
        return cls(fault.number, f"{fault.wanted}{fault.turns}: {fault.action}", fault.seen, fault.fired)


def obey(faults: Faults, line: bytes) -> list[Told]:
    """What a line asks for.  Raises ValueError for what cannot be; of them NotUnderstood for what is no such line."""
    try:
        asked = json.loads(line)
    except ValueError:
        raise NotUnderstood("write a line of JSON") from None
    if not isinstance(asked, dict):
        raise NotUnderstood("write an object of JSON")
    verb = asked.pop("do", None)
    if verb == "add":
        return [Told.of(add(faults, asked))]
    if verb == "list":
        return [Told.of(each) for each in faults]
    if verb == "remove":
        fault = found(faults, asked.get("number"))
        fault.remove()
        return [Told.of(fault)]
    if verb == "clear":
        gone = [Told.of(each) for each in faults]
        faults.clear()
        return gone
    raise NotUnderstood("do is add, list, remove or clear")


def add(faults: Faults, asked: dict[str, Any]) -> Fault:
    api, what, value = asked.pop("api", None), asked.pop("what", None), asked.pop("value", None)
    if strange := asked.keys() - set(SELECTORS):
        raise ValueError(f"{', '.join(sorted(strange))}: choose among api, what, value, {', '.join(SELECTORS)}")
    if not isinstance(api, str) or what not in WHAT:
        raise ValueError(f"say an api, and what is to happen: {', '.join(WHAT)}")
    for name, given in asked.items():
        if not isinstance(given, KINDS.get(name, str)) or isinstance(given, bool):
            raise ValueError(f"{name} cannot be {given!r}")
    return happen(faults.on(api, **asked), what, value)


KINDS: dict[str, Any] = {
    "partition": int,
    "nth": int,
    "times": int,
    "probability": int | float,
    "seed": int,
}
"""The rest are texts."""


def happen(on: On, what: str, value: Any) -> Fault:
    if what == "answer" and isinstance(value, str | int):
        return on.answer(int(value) if str(value).lstrip("-").isdigit() else str(value))
    if what == "delay" and isinstance(value, int | float):
        return on.delay(value)
    if what == "close":
        return on.close("after" if value is None else value)
    if what == "drop" and value is None:
        return on.drop()
    if what == "corrupt" and value is None:
        return on.corrupt()
    raise ValueError(f"{what} cannot be {value!r}")


def found(faults: Faults, number: Any) -> Fault:
    try:
        return faults[number]
    except KeyError as problem:
        raise ValueError(problem.args[0]) from None


async def take_faults(
    server: Server, port: int, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Until it is cancelled; says the port when there is one.  Raises OSError if that cannot be had."""
    faults = Faults()
    watch = Watch(server, faults, History())
    listeners = await trio.open_tcp_listeners(port, host=HOST)
    port = listeners[0].socket.getsockname()[1]
    logger.warning(
        "faults are taken from anybody on this machine, at %s:%d (`trilogue faults`): this broker is for tests only",
        *(HOST, port),
    )
    try:
        await trio.serve_listeners(Talk(faults).run, listeners, task_status=Port(port, task_status))
    finally:
        watch.close()


class Port:
    """Says the port where trio would say the listeners."""

    def __init__(self, port: int, status: trio.TaskStatus[int]) -> None:
        self._port, self._status = port, status

    def started(self, value: object = None) -> None:
        self._status.started(self._port)


class Talk:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    async def run(self, stream: trio.SocketStream) -> None:
        kept = b""
        with trio.move_on_after(IDLE_SECONDS) as idle:
            try:
                async for part in stream:
                    kept += part
                    while b"\n" in kept:
                        line, _, kept = kept.partition(b"\n")
                        if not await self._answer(stream, line):
                            return
                        idle.deadline = trio.current_time() + IDLE_SECONDS
                    if len(kept) > LINE_BYTES_MAX:
                        return
            except trio.BrokenResourceError:
                pass  # whoever asked has gone

    async def _answer(self, stream: trio.SocketStream, line: bytes) -> bool:
        """Whether there is more to say."""
        understood = True
        answer: dict[str, Any]
        try:
            answer = {"faults": [told._asdict() for told in obey(self._faults, line)]}
        except ValueError as problem:
            understood = not isinstance(problem, NotUnderstood)
            answer = {"error": str(problem)}
        await stream.send_all(json.dumps(answer).encode() + b"\n")
        return understood
