"""What a coordinator needs of a group, of whatever kind.

Every kind inherits from `Group`.  What not every kind answers is refused here, as Kafka refuses it; what only one kind
answers is not here at all: whoever is asked for it takes the group for what it is, with `of_kind`.
"""

from typing import Any, ClassVar, Protocol, TypeVar

from trilogue.broker.groups.offsets import Committed
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.effects import Effect, Put
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import Key


class Group(Protocol):
    kind: ClassVar[str]
    """What ListGroups and messages call it."""
    keys: ClassVar[tuple[type[Key], ...]]
    """Of its records.  The first is the group's own: when that one is removed, the group is gone."""

    id: str
    protocol_type: str | None
    """What its members do together, as ListGroups shows it; None if nobody has said."""
    deadline: float
    """When `tick` may matter: never late, sometimes early."""
    successor: "Group | None" = None
    """What it has become, if it is of another kind now."""

    def __init__(self, group_id: str, world: World) -> None: ...

    @property
    def state_name(self) -> str:
        """As DescribeGroups and ListGroups show it."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members.  Offsets may linger."""
        ...

    # -- time ----------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """What follows from time having passed."""
        ...

    def loaded(self, now: float) -> list[Effect]:
        """Everything has been replayed: members have their time from now on."""
        ...

    # -- members of the classic protocol -------------------------------------------------------

    def join(self, now: float, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any) -> list[Effect]:
        """Somebody joins, or stays through a rebalance.  Raises what the asker hears at once."""
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def sync(self, now: float, request: SyncGroupRequest, ticket: Any) -> list[Effect]:
        """A member asks for its part.  Raises what the asker hears at once."""
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    def heartbeat(self, now: float, request: HeartbeatRequest, ticket: Any) -> list[Effect]:
        """A member lives.  Raises what the asker hears."""
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    def leave(self, now: float, request: LeaveGroupRequest, ticket: Any) -> list[Effect]:
        """Members leave, or are put out.  Each is answered by itself."""
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    # -- groups of other kinds -----------------------------------------------------------------

    def gives_way_to(self, kind: str) -> bool:
        """Whether a group of another kind may be made under its name."""
        return kind != self.kind and self.is_empty

    def turn_away(self) -> list[Effect]:
        """A group of another kind is in its place: whoever waits for this one has to ask again."""
        return []

    # -- offsets -------------------------------------------------------------------------------

    def check_commit(self, member_id: str, instance_id: str | None, epoch: int, version: int) -> None:
        """May this member commit, or anybody who is none?  Raises if not."""
        ...

    def check_commit_in_transaction(self, member_id: str, instance_id: str | None, epoch: int) -> None:
        """The same for TxnOffsetCommit."""
        ...

    def may_commit(self, member_id: str, epoch: int, partition: TopicIdPartition) -> ErrorCode:
        """For this partition, after `check_commit` has been passed."""
        return ErrorCode.NONE

    def touch(self, now: float, member_id: str) -> None:
        """A member has committed, which some take for a sign of life."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """May whoever says this of itself know the offsets?  Raises if not."""
        ...

    def check_offset_delete(self) -> None:
        """May any offsets be deleted?  Raises if not; topics that members are subscribed to are refused one by one."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of this topic are in use."""
        ...

    def idle_since_ms(self, committed: Committed) -> int | None:
        """When the retention of this offset began; None while it is in use (KIP-211)."""
        ...

    # -- the log -------------------------------------------------------------------------------

    def check_delete(self) -> None:
        """May the group be deleted?  Raises if not."""
        ...

    def tombstones(self) -> list[Put]:
        """What removes everything that is stored of it, offsets apart."""
        ...

    def replay(self, put: Put, *, live: bool) -> None:
        """A record of the group is in the log, other than its end.  `live`: it is our own, of just now."""
        ...


G = TypeVar("G", bound=Group)


def of_kind(group: Group, kind: type[G]) -> G:
    """The group, if it is of this kind."""
    if not isinstance(group, kind):
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.id} is not a {kind.kind} group.")
    return group
