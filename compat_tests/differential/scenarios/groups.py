"""Classic groups: joining, offsets, and what is told about them."""

from typing import Any

from compat_tests.differential.asking import NOBODYS_ID, Asking, Topic, scenario
from compat_tests.differential.producers import GROUPS, TRANSACTIONS, coordinator
from trilogue.wire.apis.delete_groups import DeleteGroupsRequest
from trilogue.wire.apis.describe_groups import DescribeGroupsRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest
from trilogue.wire.apis.list_groups import ListGroupsRequest
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.offset_delete import OffsetDeleteRequest
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest

SHARE = 2
NOT_YET = (14, 15, 16)
"""The coordinator is loading, not available, or elsewhere."""


def ready(ask: Asking, group: str) -> str:
    """Wait until the group has a coordinator that answers."""
    coordinator(ask, group, GROUPS)
    beat = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
    ask.until(lambda answer: answer.error_code not in NOT_YET, beat, 4)
    return group


def join(group: str, member: str = "", *, instance: str | None = None, **more: Any) -> JoinGroupRequest:
    protocols = [JoinGroupRequest.Protocol(name="range", metadata=b"mine")]
    fields: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": protocols,
    }
    return JoinGroupRequest(group_id=group, member_id=member, group_instance_id=instance, **(fields | more))


def joined(ask: Asking, group: str) -> tuple[str, int]:
    """A group of one member that has its assignment: the member, and the generation."""
    ready(ask, group)
    member = ask.quietly(join(group), 5).member_id
    answer = ask.quietly(join(group, member), 5)
    assert answer.error_code == 0, answer
    assigned = [SyncGroupRequest.Assignment(member_id=member, assignment=b"yours")]
    synced = SyncGroupRequest(
        group_id=group, generation_id=answer.generation_id, member_id=member, assignments=assigned
    )
    assert ask.quietly(synced, 3).error_code == 0
    return member, answer.generation_id


@scenario(FindCoordinatorRequest)
def finding(ask: Asking) -> None:
    group = ready(ask, ask.name("group"))
    coordinator(ask, "x", TRANSACTIONS)
    for kind in (GROUPS, TRANSACTIONS, 3, -1):
        ask(f"kind {kind}", FindCoordinatorRequest(key=group, key_type=kind, coordinator_keys=[group]))
    ask("an empty key", FindCoordinatorRequest(key="", key_type=GROUPS, coordinator_keys=[""]))
    ask("an empty key of a transaction", FindCoordinatorRequest(key="", key_type=1, coordinator_keys=[""]))
    ask("a share group, without a topic", FindCoordinatorRequest(key=group, key_type=SHARE, coordinator_keys=[group]))
    ask("two keys", FindCoordinatorRequest(key=group, key_type=GROUPS, coordinator_keys=[group, "other"]))
    ask("the same key twice", FindCoordinatorRequest(key=group, key_type=GROUPS, coordinator_keys=[group, group]))
    ask("no keys", FindCoordinatorRequest(key=group, key_type=GROUPS, coordinator_keys=[]))
    ask("bytes behind the request", FindCoordinatorRequest(key=group, coordinator_keys=[group]), trailing=b"more")


@scenario(JoinGroupRequest)
def joining(ask: Asking) -> None:
    group = ready(ask, ask.name("group"))
    first = ask("without an id", join(group))
    member = first.member_id
    ask("with the id it was given", join(group, member))
    ask("and again", join(group, member))
    ask("with an id that nobody was given", join(group, "stranger"))
    ask("another group, with an id", join(ask.name("other"), "stranger"))
    ask("no group", join("", member))
    ask("a session too short", join(group, session_timeout_ms=1))
    ask("a session too long", join(group, session_timeout_ms=2**31 - 1))
    ask("no protocols", join(group, protocols=[]))
    ask("no type", join(group, protocol_type=""))
    ask("another type", join(group, protocol_type="connect"))
    other = [JoinGroupRequest.Protocol(name="mine", metadata=b"")]
    ask("another protocol", join(group, protocols=other))
    if ask.version >= 5:
        ask("static", join(ask.name("static"), instance="one"))


@scenario(SyncGroupRequest)
def syncing(ask: Asking) -> None:
    group = ready(ask, ask.name("group"))
    member = ask.quietly(join(group), 5).member_id
    generation = ask.quietly(join(group, member), 5).generation_id

    def sync(case: str, **more: Any) -> None:
        fields: dict[str, Any] = {
            "group_id": group,
            "generation_id": generation,
            "member_id": member,
            "assignments": [],
        }
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        ask(case, SyncGroupRequest(**(fields | protocol | more)))

    sync("of no group", group_id="")
    sync("of an unknown group", group_id=ask.name("unknown"))
    sync("of an old generation", generation_id=generation - 1)
    sync("of a later generation", generation_id=generation + 1)
    sync("by a stranger", member_id="stranger")
    sync("another type", protocol_type="connect")
    sync("another protocol", protocol_name="mine")
    sync("no type", protocol_type=None)
    sync("no protocol", protocol_name=None)
    sync("another instance", group_instance_id="one")
    sync("the leader's", assignments=[SyncGroupRequest.Assignment(member_id=member, assignment=b"yours")])
    sync("again, without assignments")


@scenario(HeartbeatRequest)
def beating(ask: Asking) -> None:
    group = ask.name("group")
    member, generation = joined(ask, group)

    def beat(case: str, **more: Any) -> None:
        fields: dict[str, Any] = {"group_id": group, "generation_id": generation, "member_id": member}
        ask(case, HeartbeatRequest(**(fields | more)))

    beat("fine")
    beat("again")
    beat("of no group", group_id="")
    beat("of an unknown group", group_id=ask.name("unknown"))
    beat("of an old generation", generation_id=generation - 1)
    beat("of a later generation", generation_id=generation + 1)
    beat("of generation -1", generation_id=-1)
    beat("of a stranger", member_id="stranger")
    beat("of nobody", member_id="")
    beat("of another instance", group_instance_id="one")


@scenario(LeaveGroupRequest)
def leaving(ask: Asking) -> None:
    group = ask.name("group")
    member, _ = joined(ask, group)

    def leave(case: str, *members: str, of: str = group, instance: str | None = None) -> None:
        who = [LeaveGroupRequest.Member(member_id=each, group_instance_id=instance) for each in members]
        ask(case, LeaveGroupRequest(group_id=of, member_id=members[0] if members else "", members=who), tidy=anonymous)

    def anonymous(told: dict[str, Any]) -> dict[str, Any]:
        for each in told.get("members", ()):
            each["member_id"] = "the member" if each["member_id"] == member else each["member_id"]
        return told

    leave("a stranger", "stranger")
    leave("nobody", "")
    leave("no group", member, of="")
    leave("an unknown group", member, of=ask.name("unknown"))
    leave("no members")
    leave("two strangers", "one", "two")
    leave("an unknown instance", "", instance="one")
    leave("a member as another instance", member, instance="one")
    leave("fine", member)
    leave("again", member)


def partition(index: int, offset: int, metadata: str | None = "") -> OffsetCommitRequest.Topic.Partition:
    return OffsetCommitRequest.Topic.Partition(
        partition_index=index, committed_offset=offset, committed_metadata=metadata
    )


def commit(group: str, topic: Topic, *parts: Any, **more: Any) -> OffsetCommitRequest:
    topics = [OffsetCommitRequest.Topic(name=topic.name, topic_id=topic.id, partitions=list(parts))]
    return OffsetCommitRequest(**({"group_id": group, "topics": topics} | more))


@scenario(OffsetCommitRequest)
def committing(ask: Asking) -> None:
    topic, group = ask.topic("committed", 2), ready(ask, ask.name("group"))
    ask("one", commit(group, topic, partition(0, 5)))
    ask("two", commit(group, topic, partition(0, 6), partition(1, 7, "noted")))
    ask("null metadata", commit(group, topic, partition(0, 6, None)))
    ask("long metadata", commit(group, topic, partition(0, 6, "x" * 4096)))
    ask("too long metadata", commit(group, topic, partition(0, 6, "x" * 4097)))
    ask("a negative offset", commit(group, topic, partition(0, -1)))
    ask("partition 2 of 2", commit(group, topic, partition(2, 1)))
    ask("an unknown topic", commit(group, Topic(ask.name("unknown"), NOBODYS_ID), partition(0, 1)))
    ask("no partitions", commit(group, topic))
    ask("no topics", commit(group, topic, topics=[]))
    ask("no group", commit("", topic, partition(0, 1)))
    ask("a stranger", commit(group, topic, partition(0, 1), member_id="stranger", generation_id_or_member_epoch=3))
    ask("a generation", commit(group, topic, partition(0, 1), generation_id_or_member_epoch=3))
    other = ask.name("other")
    member, generation = joined(ask, other)
    mine = {"member_id": member, "generation_id_or_member_epoch": generation}
    ask("a member", commit(other, topic, partition(0, 1), **mine))
    ask("a member of an old generation", commit(other, topic, partition(0, 1), **(mine | {FIELD: generation - 1})))
    ask("from outside, while there are members", commit(other, topic, partition(0, 1)))


FIELD = "generation_id_or_member_epoch"


@scenario(OffsetFetchRequest)
def fetching(ask: Asking) -> None:
    topic, group = ask.topic("committed", 3), ready(ask, ask.name("group"))
    written = commit(group, topic, partition(0, 5, "noted"), partition(1, 6))
    assert all(not each.error_code for each in ask.quietly(written, 8).topics[0].partitions)
    wanted = OffsetFetchRequest.Group

    def fetch(case: str, of: str, *topics: tuple[Topic, list[int]], everything: bool = False, **more: Any) -> None:
        old = [OffsetFetchRequest.Topic(name=each.name, partition_indexes=parts) for each, parts in topics]
        new = [wanted.Topic(name=each.name, topic_id=each.id, partition_indexes=parts) for each, parts in topics]
        asked = wanted(group_id=of, topics=None if everything else new)
        request = OffsetFetchRequest(group_id=of, topics=None if everything else old, groups=[asked], **more)
        ask(case, request, tidy=sort_topics)

    fetch("one", group, (topic, [0]))
    fetch("several", group, (topic, [1, 0, 2]))
    fetch("stable ones", group, (topic, [0]), require_stable=True)
    fetch("none", group)
    fetch("no partitions", group, (topic, []))
    fetch("an unknown partition", group, (topic, [7]))
    fetch("an unknown topic", group, (Topic(ask.name("unknown"), NOBODYS_ID), [0]))
    fetch("an unknown group", ask.name("unknown"), (topic, [0]))
    fetch("no group", "", (topic, [0]))
    if ask.version >= 2:
        fetch("all", group, everything=True)
        fetch("all of an unknown group", ask.name("unknown"), everything=True)


def sort_topics(told: dict[str, Any]) -> dict[str, Any]:
    """Topics and partitions come in the order of a hash table."""
    for group in [told, *told.get("groups", ())]:
        for topic in group.get("topics", ()):
            topic["partitions"].sort(key=lambda each: each["partition_index"])
        group.get("topics", []).sort(key=repr)
    return told


@scenario(OffsetDeleteRequest)
def forgetting(ask: Asking) -> None:
    topic, group = ask.topic("committed", 2), ready(ask, ask.name("group"))
    ask.quietly(commit(group, topic, partition(0, 5), partition(1, 6)), 8)

    def delete(case: str, of: str, *topics: tuple[str, list[int]]) -> None:
        asked = [
            OffsetDeleteRequest.Topic(
                name=name, partitions=[OffsetDeleteRequest.Topic.Partition(partition_index=each) for each in parts]
            )
            for name, parts in topics
        ]
        ask(case, OffsetDeleteRequest(group_id=of, topics=asked))

    delete("one", group, (topic.name, [0]))
    delete("again", group, (topic.name, [0]))
    delete("an unknown partition", group, (topic.name, [7]))
    delete("an unknown topic", group, (ask.name("unknown"), [0]))
    delete("no partitions", group, (topic.name, []))
    delete("no topics", group)
    delete("an unknown group", ask.name("unknown"), (topic.name, [0]))
    delete("no group", "", (topic.name, [0]))
    delete("the last", group, (topic.name, [1]))
    delete("of a group without offsets", group, (topic.name, [1]))


@scenario(DescribeGroupsRequest)
def describing(ask: Asking) -> None:
    topic, empty, living = ask.topic("committed"), ready(ask, ask.name("empty")), ask.name("living")
    ask.quietly(commit(empty, topic, partition(0, 5)), 8)
    joined(ask, living)

    def describe(case: str, *groups: str, **more: Any) -> None:
        ask(case, DescribeGroupsRequest(groups=list(groups), **more))

    describe("an empty group", empty)
    describe("a group with a member", living)
    describe("both", empty, living)
    describe("an unknown group", ask.name("unknown"))
    describe("a known and an unknown group", ask.name("unknown"), empty)
    describe("no group's name", "")
    describe("the same group twice", empty, empty)
    describe("none")
    describe("operations", empty, include_authorized_operations=True)
    describe("operations of an unknown group", ask.name("unknown"), include_authorized_operations=True)


@scenario(ListGroupsRequest)
def listing(ask: Asking) -> None:
    topic, empty, living = ask.topic("committed"), ready(ask, ask.name("empty")), ask.name("living")
    ask.quietly(commit(empty, topic, partition(0, 5)), 8)
    joined(ask, living)

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        found = [each for each in told["groups"] if each["group_id"] in ("empty", "living")]
        return told | {"groups": sorted(found, key=repr)}

    def list_them(case: str, **more: Any) -> None:
        ask(case, ListGroupsRequest(**more), tidy=ours_only)

    list_them("all")
    for states in (["Stable"], ["Empty"], ["stable"], ["Dead"], ["nonsense"], ["Stable", "Empty"]):
        list_them(f"states {states}", states_filter=states)
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"], ["classic", "share"]):
        list_them(f"types {types}", types_filter=types)
    list_them("both filters", states_filter=["Empty"], types_filter=["classic"])


@scenario(DeleteGroupsRequest)
def deleting(ask: Asking) -> None:
    topic, living = ask.topic("committed"), ask.name("living")
    one, two = ready(ask, ask.name("one")), ready(ask, ask.name("two"))
    for group in (one, two):
        ask.quietly(commit(group, topic, partition(0, 5)), 8)
    joined(ask, living)

    def delete(case: str, *groups: str) -> None:
        ask(case, DeleteGroupsRequest(groups_names=list(groups)), tidy=sort_results)

    delete("one", one)
    delete("again", one)
    delete("a group with a member", living)
    delete("an unknown group", ask.name("unknown"))
    delete("no group's name", "")
    delete("none")
    delete("an unknown one twice", ask.name("unknown"), ask.name("unknown"))
    delete("a known and an unknown one", two, ask.name("unknown"))
    delete("all of them once more", one, two, living)
    delete("a name that cannot be a topic's", "a/b")


def sort_results(told: dict[str, Any]) -> dict[str, Any]:
    """Groups come in the order of a hash table."""
    return told | {"results": sorted(told["results"], key=repr)}
