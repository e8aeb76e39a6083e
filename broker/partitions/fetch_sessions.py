"""Incremental fetch sessions (KIP-227): a consumer says once what it reads, and hears only what is new.

Pure but for the ids, which are drawn.  A session belongs to whoever knows its id; its epoch counts the requests,
so that a lost or repeated one is noticed.
"""

import random
from collections.abc import Iterable
from typing import NamedTuple

from trilogue.broker.partitions.standing import Key, Standing
from trilogue.wire.errors import BrokerError, ErrorCode

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
EPOCH_MAX = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000
"""A session that was not used for so long gives way to a new one when there are too many."""


class Wanted(NamedTuple):
    """What a fetch asks of one partition."""

    topic: str | bytes
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class Entry:
    """A partition of a session, and what its owner was told last."""

    __slots__ = ("told", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.told: tuple[int, int] | None = None
        """High watermark and log start."""


class Session:
    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.id, self.by_id, self.used_ms = session_id, by_id, now_ms
        self.epoch = 1
        self.entries: dict[Key, Entry] = {}
        self.standing: Standing | None = None
        """What a follower's watches over."""

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        for each in wanted:
            key = (each.topic, each.partition)
            if (entry := self.entries.get(key)) is not None:
                before, entry.wanted = entry.wanted, each
                if each.leader_epoch != before.leader_epoch or each.offset < before.offset:
                    entry.told = None  # what it was told under another epoch, or of what it has cut off, it has dropped
            else:
                self.entries[key] = Entry(each)
        for key in forgotten:
            self.entries.pop(key, None)

    def is_news(
        self, key: Key, high_watermark: int, log_start: int, has_data: bool, error: int, *, diverges: bool = False
    ) -> bool:
        """Whether the owner has to hear this.  Who gets data goes to the end of the queue, for fairness."""
        entry = self.entries[key]
        told = (high_watermark, log_start)
        refused = diverges or error != ErrorCode.NONE
        news = has_data or refused or entry.told != told
        # That is repeated until it is over, and what comes after it is news: whoever hears it takes nothing else over.
        entry.told = None if refused else told
        if has_data:
            del self.entries[key]
            self.entries[key] = entry
        return news


def passing_session(wanted: Iterable[Wanted], now_ms: int) -> Session:
    """Of a follower for whom there is no room: for one fetch."""
    session = Session(NO_SESSION, True, now_ms)
    session.update(wanted, ())
    return session


class Context(NamedTuple):
    """How one fetch is to be answered."""

    session: Session | None
    full: bool
    """Everything that was asked for is answered, news or not."""


class FetchSessions:
    def __init__(self, slots: int, chance: random.Random) -> None:
        self._slots, self._chance = slots, chance
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def clear(self) -> None:
        for session_id in list(self._sessions):
            self._end(session_id)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None and session.standing is not None:
            session.standing.stand_down()

    def stand_down(self, unused_since: float) -> None:
        """Of followers' sessions those that were not used for long."""
        for session in self._sessions.values():
            if session.standing is not None and session.standing.asked_at < unused_since:
                session.standing.stand_down()

    def limit(self, slots: int) -> None:
        """No more than so many from here on; the oldest are forgotten."""
        self._slots = slots
        while len(self._sessions) > slots:
            self._end(next(iter(self._sessions)))

    def begin(
        self,
        session_id: int,
        epoch: int,
        by_id: bool,
        wanted: list[Wanted],
        forgotten: Iterable[Key],
        now_ms: int,
    ) -> Context:
        """What this request means.  Raises for a session that is unknown or out of step."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(session_id)
            if epoch == FINAL_EPOCH or not self._make_room(now_ms):
                return Context(None, full=True)
            session = Session(self._fresh_id(), by_id, now_ms)
            session.update(wanted, ())
            self._sessions[session.id] = session
            return Context(session, full=True)
        known = self._sessions.get(session_id)
        if known is None:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if known.epoch != epoch:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"epoch {epoch}; {known.epoch} was to come")
        if known.by_id != by_id:
            raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        known.update(wanted, forgotten)
        if not known.entries:
            self._end(session_id)
            return Context(None, full=True)
        known.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        self._touch(known, now_ms)
        return Context(known, full=False)

    def _touch(self, session: Session, now_ms: int) -> None:
        """To the end of the queue of those who may be evicted."""
        session.used_ms = now_ms
        del self._sessions[session.id]
        self._sessions[session.id] = session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.used_ms < EVICTABLE_AFTER_MS:
            return False
        self._end(oldest.id)
        return True

    def _fresh_id(self) -> int:
        while (drawn := self._chance.randrange(1, 2**31)) in self._sessions:
            pass
        return drawn
