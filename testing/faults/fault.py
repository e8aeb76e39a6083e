"""A fault: which requests it meets, when its time has come, and what it does to them."""

import random
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from math import inf
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from trilogue.broker.requests import registry
from trilogue.testing.faults.shapes import Subject, answer_of, selectors, shape
from trilogue.wire.errors import ErrorCode
from trilogue.wire.schema import Kind, Request

Code = ErrorCode | int | str


class Answer(NamedTuple):
    """Refuse it, and have nothing of it done."""

    code: ErrorCode

    def __str__(self) -> str:
        return f"answer {self.code.name}"


class Delay(NamedTuple):
    """Do it, and answer so much later.  Until then the connection waits."""

    seconds: float

    def __str__(self) -> str:
        return f"delay {self.seconds:g} s"


class Drop(NamedTuple):
    """Do it, and say nothing any more on that connection."""

    def __str__(self) -> str:
        return "drop"


class Close(NamedTuple):
    """Close the connection: before anything of it is done, or after."""

    when: str

    def __str__(self) -> str:
        return f"close {self.when}"


class Corrupt(NamedTuple):
    """Damage the records of the answer, if there are any."""

    def __str__(self) -> str:
        return "corrupt"


Action = Answer | Delay | Drop | Close | Corrupt
BEFORE, AFTER = "before", "after"


class Wanted(NamedTuple):
    """Which requests."""

    api: str
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None

    def meets(self, subject: Subject) -> bool:
        """Whether that is what is meant, as far as it is said."""
        return all(
            mine is None or mine == its
            for mine, its in zip((self.topic, self.partition, self.group, self.transactional_id), subject, strict=True)
        )

    def is_of(self, client_id: str | None, about: Iterable[Subject]) -> bool:
        """Whether a request from there, about that, is one of them, if its API is."""
        return self.client_id in (None, client_id) and any(map(self.meets, about))

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in self._asdict().items() if value is not None and name != "api"]
        return " ".join([self.api, *said])


class Turns(NamedTuple):
    """Which of them: from the `nth` on, so many, each by chance."""

    nth: int | None = None
    times: int | None = None
    probability: float | None = None
    seed: int = 0

    @property
    def most(self) -> float:
        return self.times if self.times is not None else inf if self.nth is None else 1

    def __str__(self) -> str:
        given = self._asdict() if self.probability is not None else {"nth": self.nth, "times": self.times}
        return "".join(f" {name}={value}" for name, value in given.items() if value is not None)


class Fault:
    """Made by `faults.on(...)`.  By `with` it is there until the block ends."""

    def __init__(
        self, number: int, wanted: Wanted, turns: Turns, action: Action, remove: Callable[["Fault"], None]
    ) -> None:
        self.number, self.wanted, self.turns, self.action = number, wanted, turns, action
        self._remove, self._chance = remove, random.Random(turns.seed)
        self.seen = 0
        """How many requests it has met."""
        self.fired = 0
        """To how many of them it has happened."""

    @property
    def spent(self) -> bool:
        """It will not happen any more."""
        return self.fired >= self.turns.most

    def is_due(self) -> bool:
        """One more request is met: whether it happens to this one."""
        self.seen += 1
        if self.seen < (self.turns.nth or 1) or self.spent:
            return False
        if self.turns.probability is not None and self._chance.random() >= self.turns.probability:
            return False
        self.fired += 1
        return True

    def remove(self) -> None:
        """It does not happen from here on.  Once more does no harm."""
        self._remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.remove()

    def __str__(self) -> str:
        return f"{self.number}: {self.wanted}{self.turns}: {self.action}, fired {self.fired}"

    def __repr__(self) -> str:
        return f"<Fault {self}>"


class On:
    """The beginning of a sentence: what `faults.on(...)` gives.  What happens is said by one of the methods."""

    def __init__(self, wanted: Wanted, turns: Turns, add: Callable[[Wanted, Turns, Action], Fault]) -> None:
        self._wanted, self._turns, self._add = wanted, turns, add

    def answer(self, code: Code) -> Fault:
        """Refuse with this error; nothing of what is refused is done, and the rest of the request is."""
        refused = error_code(code)
        request = api(self._wanted.api).request
        if not any(shape(request, version).can_refuse for version in api(self._wanted.api).numbers):
            raise ValueError(f"{self._wanted.api} has no error code in its answer")
        return self._add(self._wanted, self._turns, Answer(refused))

    def delay(self, seconds: float) -> Fault:
        """Do it, and answer so many seconds later."""
        if not seconds > 0:
            raise ValueError(f"a delay takes more than no time, not {seconds} s")
        return self._add(self._wanted, self._turns, Delay(seconds))

    def drop(self) -> Fault:
        """Do it, but the answer never comes, nor anything else on that connection."""
        return self._add(self._wanted, self._turns, Drop())

    def close(self, when: Literal["before", "after"] = "after") -> Fault:
        """Close the connection: `"before"` anything of it is done, or `"after"` all of it is."""
        if when not in (BEFORE, AFTER):
            raise ValueError(f"close {BEFORE!r} or {AFTER!r} it is handled, not {when!r}")
        return self._add(self._wanted, self._turns, Close(when))

    def corrupt(self) -> Fault:
        """Damage the records of the answer, so that a client that checks them finds out."""
        if not brings_records(answer_of(api(self._wanted.api).request)):
            raise ValueError(f"no records come with an answer to {self._wanted.api}: corrupt those to Fetch")
        return self._add(self._wanted, self._turns, Corrupt())


# -- what can be said, and what cannot -------------------------------------------------------------


def wanted(name: str, **chosen: Any) -> Wanted:
    """Raises ValueError for what is not there, or makes no sense."""
    spoken = selectors(api(name).request)
    for which, value in chosen.items():
        if value is not None and which != "client_id" and which not in spoken:
            has = ", ".join(sorted({*spoken, "client_id"}))
            raise ValueError(f"{name} requests do not say a {which.replace('_', ' ')}: choose among {has}")
    return Wanted(name, **chosen)


def turns(nth: int | None, times: int | None, probability: float | None, seed: int) -> Turns:
    for name, number in (("nth", nth), ("times", times)):
        if number is not None and number < 1:
            raise ValueError(f"{name} counts from 1, and is not {number}")
    if probability is not None:
        if not 0 < probability <= 1:
            raise ValueError(f"a probability is more than 0 and at most 1, not {probability}")
        if nth is not None:
            raise ValueError("say nth or probability, not both")
    return Turns(nth, times, probability, seed)


def api(name: str) -> registry.Api:
    registry.load()
    known = {each.request.__name__.removesuffix("Request"): each for each in registry.APIS.values()}
    if name not in known:
        raise ValueError(f"{name}: there is no such API{meant(name, known)}")
    return known[name]


def error_code(code: Code) -> ErrorCode:
    if isinstance(code, str):
        if code not in ErrorCode.__members__:
            raise ValueError(f"{code}: there is no such error{meant(code, ErrorCode.__members__)}")
        found = ErrorCode[code]
    else:
        try:
            found = ErrorCode(code)  # type: ignore[call-arg]
        except ValueError:
            raise ValueError(f"{code}: there is no error of that number") from None
    if found is ErrorCode.NONE:
        raise ValueError("NONE says that all went well, which is no error")
    return found


def meant(name: str, known: Iterable[str]) -> str:
    small = {each.lower(): each for each in known}
    begun = sorted(each for each in small if name and each.startswith(name.lower()))
    close = begun or get_close_matches(name.lower(), small, 1)
    return f"; did you mean {small[close[0]]}?" if close else ""


def brings_records(struct: Any) -> bool:
    return any(
        each.kind is Kind.RECORDS or (not isinstance(each.kind, Kind) and brings_records(each.kind))
        for each in struct.fields.values()
    )


def name_of(request: type[Request]) -> str:
    """What the API is called."""
    return request.__name__.removesuffix("Request")
