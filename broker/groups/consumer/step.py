"""One step of a member of a consumer group: what its heartbeat, or its JoinGroup, changes.

The step is taken from the group as it is stored, and gathered in records; nothing is changed before these are replayed.
"""

from collections.abc import Collection
from dataclasses import dataclass

from trilogue.broker.groups.consumer.member import ConsumerMember
from trilogue.broker.groups.consumer.reconcile import reconcile
from trilogue.broker.groups.consumer.state import ConsumerState
from trilogue.broker.groups.consumer.target import Members, next_epoch, shares
from trilogue.broker.groups.patterns import matching
from trilogue.broker.groups.world import World
from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicIdPartition


@dataclass(slots=True, eq=False)
class Step:
    group: ConsumerState
    world: World
    before: ConsumerMember
    member: ConsumerMember
    """As it describes itself now."""
    replaced: str | None
    """The id under which it was known, if it returns as a static member."""
    puts: list[Put]
    moved: bool = False
    """Whether it has something else than before, or is asked for something."""

    def subscribe(self, *, topics_changed: bool) -> int:
        """Note what the member says about itself.  The group's epoch, raised if the assignment may have to change."""
        group, before, member = self.group, self.before, self.member
        is_new = member.id not in group.members and self.replaced is None
        if is_new or not member.says_the_same(before):
            self.puts.append(member.put_metadata(group.id))
        if not topics_changed and member.topics == before.topics and member.regex == before.regex:
            return group.epoch
        matched = self._matched()  # raises for what is no pattern
        changed = member.topics != before.topics or matched != group.patterns.get(before.regex, frozenset())
        return next_epoch(group, self._members(), self.world, changed=changed, puts=self.puts)

    def advance(self, epoch: int, owned: Collection[TopicIdPartition] | None) -> ConsumerMember:
        """The member one step nearer to the target assignment of the group's epoch, which is made if there is none yet.

        `owned` is what it says it still has, if it says so."""
        assignment_epoch, target = self._assign(epoch)
        mine = (None, self.member.id, self.replaced)
        after = reconcile(
            self.member,
            assignment_epoch,
            target,
            owned,
            lambda partition: self.group.owner(partition) not in mine,
            self._unwanted(target),
        )
        self.moved = after != self.member
        if self.moved:
            self.puts.append(after.put_assignment(self.group.id))
        return after

    def _assign(self, epoch: int) -> tuple[int, Collection[TopicIdPartition]]:
        """The target assignment's epoch, and what it has for this member.  It is made anew for a new epoch, but not
        more often than once in an interval: many members may be coming."""
        group, member = self.group, self.member
        former = group.target.get(self.replaced or member.id, frozenset())
        if epoch == group.assignment_epoch or group.assigned_lately:
            return group.assignment_epoch, former
        members = self._members()
        assignor = group.preferred_assignor(members.values())
        target = shares(members, {**group.target, member.id: former}, assignor, self.world.image)
        for member_id, share in sorted(target.items()):
            known = former if member_id == member.id and self.replaced else group.target.get(member_id)
            if known is None or known != share:
                self.puts.append(group.put_target(member_id, share))
        self.puts.append(group.put_assignment_epoch(epoch, self.world.clock()))
        return epoch, target[member.id]

    def _unwanted(self, target: Collection[TopicIdPartition]) -> set[bytes]:
        """Topics that it has just unsubscribed from."""
        if (self.member.topics, self.member.regex) == (self.before.topics, self.before.regex):
            return set()
        names = self.member.topics | self._matched()
        told = {topic_id for topic_id, _ in (*self.member.assigned, *target)}
        return {each for each in told if self.world.image.topic_names.get(each) not in names}

    def _matched(self) -> frozenset[str]:
        return matching(self.member.regex, self.world.image.topics) if self.member.regex else frozenset()

    def _members(self) -> Members:
        """Those whom the group has then."""
        others = {each.id: each for each in self.group.members.values() if each.id != self.replaced}
        return others | {self.member.id: self.member}
