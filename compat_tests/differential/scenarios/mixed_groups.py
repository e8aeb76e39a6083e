"""Classic requests to consumer groups of the new protocol (KIP-848): members of both kinds in one group."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from compat_tests.differential.producers import RETRIABLE
from compat_tests.differential.scenarios.consumer_groups import (
    NEWEST,
    heartbeat,
    mixed_group,
    new_group,
    old_join,
    subscription,
)
from compat_tests.differential.scenarios.groups import commit, partition
from compat_tests.differential.scenarios.transactions import begun
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from trilogue.wire.apis.delete_groups import DeleteGroupsRequest
from trilogue.wire.apis.describe_groups import DescribeGroupsRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest
from trilogue.wire.apis.list_groups import ListGroupsRequest
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.offset_delete import OffsetDeleteRequest
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest


@scenario(JoinGroupRequest)
def joining_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group = new_group(ask, topic, "new")
    static = new_group(ask, topic, "s", group="static", instance_id="i")
    empty = new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)
    member = ask("without an id", old_join(group, "", topic)).member_id
    ask("with the id it was given", old_join(group, member, topic))
    ask("and again", old_join(group, member, topic))
    ask("with an id that nobody was given", old_join(group, "stranger", topic))
    ask("another type", old_join(group, "", topic, protocol_type="connect"))
    ask("no protocols", old_join(group, "", topic, protocols=[]))
    other = [JoinGroupRequest.Protocol(name="mine", metadata=subscription(topic))]
    ask("another protocol", old_join(group, "", topic, protocols=other))
    ask("the id of a consumer", old_join(group, "new", topic))
    ask("an empty group, with an id", old_join(empty, "stranger", topic))
    ask("an empty group", old_join(empty, "", topic))
    if ask.version >= 5:
        ask("an unknown static member, with an id", old_join(group, "stranger", topic, instance="j"))
        ask("a static member with another id", old_join(static, "stranger", topic, instance="i"))
        ask("a static member comes back classic", old_join(static, "", topic, instance="i"))


@scenario(SyncGroupRequest)
def syncing_with_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, member, generation = mixed_group(ask, topic)
    empty = new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)

    def sync(case: str, **more: Any) -> None:
        fields = {"group_id": group, "generation_id": generation, "member_id": member, "assignments": []}
        ask(case, SyncGroupRequest(**(fields | {"protocol_type": "consumer", "protocol_name": "range"} | more)))

    sync("what it has")
    sync("no type", protocol_type=None)
    sync("another type", protocol_type="connect")
    sync("another protocol", protocol_name="mine")
    sync("an old generation", generation_id=generation - 1)
    sync("a stranger", member_id="stranger")
    sync("a consumer", member_id="new")
    sync("an empty group", group_id=empty)
    sync("another instance", group_instance_id="i")
    ask.quietly(old_join(group, member, topic), 9)
    sync("after it has joined again")


@scenario(HeartbeatRequest)
def beating_among_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, member, generation = mixed_group(ask, topic)
    empty = new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)

    def beat(case: str, **more: Any) -> None:
        fields: dict[str, Any] = {"group_id": group, "generation_id": generation, "member_id": member}
        ask(case, HeartbeatRequest(**(fields | more)))

    beat("there is more for it")
    ask.quietly(old_join(group, member, topic), 9)
    beat("it has what it should have")
    beat("an old generation", generation_id=generation - 1)
    beat("a later generation", generation_id=generation + 1)
    beat("a stranger", member_id="stranger")
    beat("a consumer", member_id="new")
    beat("another instance", group_instance_id="i")
    beat("an empty group", group_id=empty)
    ask.quietly(heartbeat(group, "third", 0, subscribed_topic_names=[topic.name]), NEWEST)
    beat("another has come")
    ask.quietly(heartbeat(group, "third", -1), NEWEST)
    ask.quietly(heartbeat(group, "new", -1), NEWEST)
    beat("the group is classic again")


@scenario(LeaveGroupRequest)
def leaving_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, member, _ = mixed_group(ask, topic)
    static = new_group(ask, topic, "s", group="static", instance_id="i")

    def leave(case: str, *members: str, of: str = group, instance: str | None = None) -> None:
        who = [LeaveGroupRequest.Member(member_id=each, group_instance_id=instance) for each in members]
        request = LeaveGroupRequest(group_id=of, member_id=members[0] if members else "", members=who)
        ask(case, request, tidy=anonymous)

    def anonymous(told: dict[str, Any]) -> dict[str, Any]:
        for each in told.get("members", ()):
            each["member_id"] = "the member" if each["member_id"] == member else each["member_id"]
        return told

    leave("a stranger", "stranger")
    leave("nobody")
    leave("an unknown instance", "", instance="j")
    leave("a static consumer by another id", "stranger", of=static, instance="i")
    leave("a static consumer by its name", "", of=static, instance="i")
    leave("a classic member", member)
    leave("again", member)
    leave("a consumer", "new")
    leave("of an empty group", "new")


@scenario(OffsetCommitRequest)
def committing_to_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, member, generation = mixed_group(ask, topic)

    def write(case: str, who: str, epoch: int) -> None:
        ask(case, commit(group, topic, partition(0, 5), member_id=who, generation_id_or_member_epoch=epoch))

    write("a consumer", "new", generation)
    write("a consumer, an epoch before", "new", generation - 1)
    write("a consumer, an epoch it never had", "new", generation - 2)
    write("a consumer, an epoch to come", "new", generation + 1)
    write("a classic member", member, generation)
    write("a classic member, an old generation", member, generation - 1)
    write("a stranger", "stranger", generation)
    write("from outside", "", -1)


@scenario(OffsetFetchRequest)
def fetching_from_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group = new_group(ask, topic, "new")
    asked = OffsetFetchRequest.Group

    def fetch(case: str, **more: Any) -> None:
        new = [asked.Topic(name=topic.name, topic_id=topic.id, partition_indexes=[0])]
        old = [OffsetFetchRequest.Topic(name=topic.name, partition_indexes=[0])]
        ask(case, OffsetFetchRequest(group_id=group, topics=old, groups=[asked(group_id=group, topics=new, **more)]))

    fetch("from outside")
    fetch("a member", member_id="new", member_epoch=2)
    fetch("an old epoch", member_id="new", member_epoch=1)
    fetch("a later epoch", member_id="new", member_epoch=3)
    fetch("a stranger", member_id="stranger", member_epoch=2)
    fetch("an epoch and nobody", member_epoch=2)


@scenario(DescribeGroupsRequest)
def describing_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, empty = new_group(ask, topic, "new"), new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)
    mixed, _, _ = mixed_group(ask, topic)
    ask("a consumer group", DescribeGroupsRequest(groups=[group]))
    ask("one with a classic member", DescribeGroupsRequest(groups=[mixed]))
    ask("an empty one", DescribeGroupsRequest(groups=[empty]))
    ask("all of them", DescribeGroupsRequest(groups=[group, mixed, empty], include_authorized_operations=True))


@scenario(ListGroupsRequest)
def listing_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    new_group(ask, topic, "new", group="stable")
    empty = new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)
    new_group(ask, topic, "a", "b", group="reconciling")

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        found = [each for each in told["groups"] if each["group_id"] in ("stable", "empty", "reconciling")]
        return told | {"groups": sorted(found, key=repr)}

    ask("all", ListGroupsRequest(), tidy=ours_only)
    for states in (["Stable"], ["Empty"], ["reconciling"], ["Assigning"]):
        ask(f"states {states}", ListGroupsRequest(states_filter=states), tidy=ours_only)
    ask("consumer groups", ListGroupsRequest(types_filter=["consumer"]), tidy=ours_only)
    ask("classic groups", ListGroupsRequest(types_filter=["classic"]), tidy=ours_only)


@scenario(DeleteGroupsRequest)
def deleting_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, empty = new_group(ask, topic, "new"), new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)
    ask("one with a member", DeleteGroupsRequest(groups_names=[group]))
    ask("an empty one", DeleteGroupsRequest(groups_names=[empty]))
    ask("and again", DeleteGroupsRequest(groups_names=[empty]))


@scenario(OffsetDeleteRequest)
def forgetting_of_consumers(ask: Asking) -> None:
    topic, other = ask.topic("read", 2), ask.topic("other")
    group = new_group(ask, topic, "new")
    for each in (topic, other):
        written = commit(group, each, partition(0, 5), member_id="new", generation_id_or_member_epoch=2)
        assert ask.quietly(written, 9).topics[0].partitions[0].error_code == 0

    def forget(case: str, name: str) -> None:
        asked = [OffsetDeleteRequest.Topic.Partition(partition_index=0)]
        ask(case, OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequest.Topic(name=name, partitions=asked)]))

    forget("what it reads", topic.name)
    forget("what it does not read", other.name)
    forget("what is not there", ask.name("unknown"))


@scenario(TxnOffsetCommitRequest)
def committing_in_transactions_of_consumers(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group, member, generation = mixed_group(ask, topic)
    name, producer, epoch = begun(ask, "committing")
    enlist = AddOffsetsToTxnRequest(transactional_id=name, producer_id=producer, producer_epoch=epoch, group_id=group)
    ask.until(lambda answer: answer.error_code not in RETRIABLE, enlist, 3)

    def write(case: str, who: str, at: int) -> None:
        place = TxnOffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=5, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=group,
            producer_id=producer,
            producer_epoch=epoch,
            generation_id_or_member_epoch=at,
            member_id=who,
            topics=[TxnOffsetCommitRequest.Topic(name=topic.name, partitions=[place])],
        )
        ask(case, request)

    write("a consumer", "new", generation)
    write("a consumer, an epoch before", "new", generation - 1)
    write("a consumer, an epoch to come", "new", generation + 1)
    write("a classic member", member, generation)
    write("a classic member, an old generation", member, generation - 1)
    write("a stranger", "stranger", generation)
    write("from outside", "", -1)
