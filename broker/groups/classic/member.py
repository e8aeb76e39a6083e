"""One member of a classic group, and what becomes of it in the log."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.internal.offsets import MemberMetadata

NEW_MEMBER_SECONDS = 300.0
"""How long somebody new may wait for the others, whatever its session timeout: without a generation it cannot
heartbeat yet.  Kafka's number."""


class Parked(NamedTuple):
    """A JoinGroup that waits for the others."""

    ticket: Any
    version: int


@dataclass(slots=True, eq=False)
class ClassicMember:
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    """What it can do, by name, the dearest first."""
    assignment: bytes = b""
    deadline: float = inf
    """When it counts as gone.  Who waits for us is not late."""
    is_new: bool = field(default=False, kw_only=True)
    joining: Parked | None = field(default=None, kw_only=True)
    syncing: Any = field(default=None, kw_only=True)
    """The ticket of a SyncGroup that waits for the leader's."""
    synced: bool = field(default=True, kw_only=True)
    """Whether it has asked for its part of this generation."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def touch(self, now: float) -> None:
        """It has been heard from."""
        if self.joining is None and self.syncing is None:
            self.deadline = now + self.session_timeout_ms / 1000

    def update(self, request: JoinGroupRequest) -> None:
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.protocols = protocols_of(request)

    def matches(self, request: JoinGroupRequest) -> bool:
        """Whether it wants what it wanted before, in the same order."""
        return list(self.protocols.items()) == list(protocols_of(request).items())

    def vote(self, candidates: Collection[str]) -> str:
        return next(name for name in self.protocols if name in candidates)

    def to_record(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.protocols.get(protocol or "", b""),
            assignment=assignment,
        )

    @classmethod
    def from_record(cls, it: MemberMetadata, protocol: str | None) -> "ClassicMember":
        rebalance_timeout_ms = it.session_timeout if it.rebalance_timeout == -1 else it.rebalance_timeout
        return cls(
            it.member_id,
            it.group_instance_id,
            it.client_id,
            it.client_host,
            it.session_timeout,
            rebalance_timeout_ms,
            {protocol or "": it.subscription},
            it.assignment,
        )


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    return {each.name: each.metadata for each in request.protocols}


def common(members: Sequence[ClassicMember]) -> set[str]:
    """The protocols that everybody can do."""
    return set.intersection(*(set(each.protocols) for each in members)) if members else set()


def chosen(members: Sequence[ClassicMember]) -> str:
    """The protocol with the most votes, of those that everybody can do; the earliest voted for, if there are two."""
    candidates = common(members)
    votes: dict[str, int] = {}
    for each in members:
        name = each.vote(candidates)
        votes[name] = votes.get(name, 0) + 1
    return max(votes, key=lambda name: votes[name])
