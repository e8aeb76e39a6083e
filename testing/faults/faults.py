"""`broker.faults`: all of a broker, as a test sets and removes them.

    broker.faults.on("Produce", topic="orders", nth=3).answer("NOT_ENOUGH_REPLICAS")

Every fault counts the requests that it meets; what happens to one is all that is due.  Those that are set before the
broker starts, or outlive it, are there when it starts again.
"""

import threading
from collections.abc import Callable, Iterator

from trilogue.testing.faults.fault import Action, Fault, On, Turns, Wanted, turns, wanted


def nothing() -> None:
    """Nobody has to hear of it."""


class Faults:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._all: tuple[Fault, ...] = ()
        """Replaced, never changed: the broker reads it in its own thread."""
        self._lock = threading.Lock()
        self._number = 0
        self.changed: Callable[[], None] = nothing
        """Told when there are more or fewer, and waited for."""

    def on(
        self,
        api: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client_id: str | None = None,
        nth: int | None = None,
        times: int | None = None,
        probability: float | None = None,
        seed: int = 0,
    ) -> On:
        """What is to happen to requests of this API, by Kafka's name: `.answer(...)`, `.delay(...)`, `.drop()`,
        `.close(...)` or `.corrupt()`.

        To all of them, or the `nth` alone, or the first `times`, or as many from the `nth` on, or each with a
        `probability` that is drawn from `seed`.
        """
        which = wanted(
            api,
            topic=topic,
            partition=partition,
            group=group,
            transactional_id=transactional_id,
            client_id=client_id,
        )
        return On(which, turns(nth, times, probability, seed), self._add)

    def _add(self, which: Wanted, when: Turns, action: Action) -> Fault:
        with self._lock:
            self._number += 1
            fault = Fault(self._number, which, when, action, self._remove)
            self._all = (*self._all, fault)
        self.changed()
        return fault

    def _remove(self, fault: Fault) -> None:
        with self._lock:
            self._all = tuple(each for each in self._all if each is not fault)
        self.changed()

    def clear(self) -> None:
        with self._lock:
            self._all = ()
        self.changed()

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Fault:
        """By its number, which `str(fault)` begins with."""
        for fault in self._all:
            if fault.number == number:
                return fault
        raise KeyError(f"there is no fault {number}")
