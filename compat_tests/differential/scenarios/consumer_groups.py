"""Consumer groups of the new protocol (KIP-848): heartbeats, and what is told of the groups."""

import time
from collections.abc import Callable
from typing import Any

from compat_tests.differential.asking import Asking, Topic, scenario
from compat_tests.differential.scenarios.groups import commit, join, joined, partition, ready
from trilogue.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.apis.delete_groups import DeleteGroupsRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.codec import build
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

PATTERNS_SINCE = 1
NEWEST = 1
RESOLVED_SECONDS = 10.0
"""How long a broker may take to find the topics of a pattern."""

Beat = Callable[..., Any]


def heartbeat(group: str, member: str, epoch: int, **more: Any) -> ConsumerGroupHeartbeatRequest:
    """Whoever joins tells everything, but for what is given."""
    told: dict[str, Any] = {}
    if epoch == 0:
        told = {"rebalance_timeout_ms": 30_000, "topic_partitions": [], "subscribed_topic_names": []}
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **(told | more))


def owned(*topics: tuple[Topic, list[int]]) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    made = ConsumerGroupHeartbeatRequest.TopicPartitions
    return [made(topic_id=topic.id, partitions=indexes) for topic, indexes in topics]


def subscription(*topics: Topic) -> bytes:
    return b"\0\0" + build(ConsumerProtocolSubscription(topics=[each.name for each in topics]), 0)


def old_join(group: str, member: str, topic: Topic, **more: Any) -> JoinGroupRequest:
    """Of a classic consumer."""
    protocols = [JoinGroupRequest.Protocol(name="range", metadata=subscription(topic))]
    return join(group, member, **({"protocols": protocols} | more))


def seen(ask: Asking, name: str, *topics: Topic) -> str:
    """A group whose coordinator knows these topics, and nothing else.  It is told of new topics a little later."""
    group = ready(ask, ask.name(name))
    until = time.monotonic() + RESOLVED_SECONDS
    while True:
        asked = heartbeat(group, "probe", 0, subscribed_topic_names=[each.name for each in topics])
        told = ask.quietly(asked, NEWEST).assignment.topic_partitions
        ask.quietly(heartbeat(group, "probe", -1), NEWEST)
        ask.quietly(DeleteGroupsRequest(groups_names=[group]), 2)
        if {bytes(each.topic_id) for each in told} == {each.id for each in topics}:
            return group
        assert time.monotonic() < until, f"{group} does not see {topics}"
        time.sleep(0.02)


def new_group(ask: Asking, topic: Topic, *members: str, group: str = "new", **more: Any) -> str:
    """A consumer group of these members, who have what they should have."""
    name = seen(ask, group, topic)
    for member in members:
        told = ask.quietly(heartbeat(name, member, 0, subscribed_topic_names=[topic.name], **more), NEWEST)
        assert told.error_code == 0, told
    return name


def mixed_group(ask: Asking, topic: Topic) -> tuple[str, str, int]:
    """A group of two: `new`, and a classic member that has its half of the topic; its id, and its generation."""
    group = new_group(ask, topic, "new", group="mixed")
    member = ask.quietly(old_join(group, "", topic), 9).member_id
    generation = ask.quietly(old_join(group, member, topic), 9).generation_id
    ask.quietly(SyncGroupRequest(group_id=group, generation_id=generation, member_id=member, assignments=[]), 3)
    half = owned((topic, [0]))
    for epoch in (generation - 1, generation - 1):
        ask.quietly(heartbeat(group, "new", epoch, topic_partitions=half), NEWEST)
    return group, member, generation


def sort_assignment(told: dict[str, Any]) -> dict[str, Any]:
    """Topics and partitions come in the order of a hash table."""
    if told["assignment"]:
        topics = told["assignment"]["topic_partitions"]
        for each in topics:
            each["partitions"].sort()
        topics.sort(key=repr)
    return told


# -- ConsumerGroupHeartbeat ------------------------------------------------------------------------------


def beater(ask: Asking, group: str) -> Beat:
    def beat(case: str, member: str, epoch: int, of: str = group, **more: Any) -> Any:
        return ask(case, heartbeat(of, member, epoch, **more), tidy=sort_assignment)

    return beat


@scenario(ConsumerGroupHeartbeatRequest)
def one_member(ask: Asking) -> None:
    topic = ask.topic("read", 4)
    group = seen(ask, "group", topic)
    beat = beater(ask, group)
    mine = {"subscribed_topic_names": [topic.name]}
    beat("an unknown group", "m", 1)
    beat("leaves an unknown group", "m", -1)
    beat("joins", "m", 0, **mine)
    beat("stays", "m", 2)
    beat("says what it has", "m", 2, topic_partitions=owned((topic, [0, 1, 2, 3])))
    beat("says everything", "m", 2, topic_partitions=owned((topic, [0])), rebalance_timeout_ms=20_000, **mine)
    beat("an epoch too late", "m", 3)
    beat("an epoch too early", "m", 1)
    beat("the epoch before, with what it has", "m", 0, **mine)
    beat("a stranger", "stranger", 2)
    beat("a stranger leaves", "stranger", -1)
    beat("subscribes to nothing", "m", 2, subscribed_topic_names=[])
    beat("gives back", "m", 2, topic_partitions=[])
    beat("subscribes to what is not there", "m", 3, subscribed_topic_names=[ask.name("unknown")])
    beat("subscribes again", "m", 4, **mine)
    beat("leaves", "m", -1)
    beat("leaves again", "m", -1)
    beat("joins again", "m", 0, **mine)


@scenario(ConsumerGroupHeartbeatRequest)
def wrong_requests(ask: Asking) -> None:
    topic, group = ask.topic("read"), ready(ask, ask.name("group"))
    beat = beater(ask, group)
    beat("no group", "m", 0, of="")
    beat("no instance", "m", 0, instance_id="")
    beat("no rack", "m", 0, rack_id="")
    beat("epoch -3", "m", -3)
    beat("epoch -2 without an instance", "m", -2)
    beat("no timeout", "m", 0, rebalance_timeout_ms=-1)
    beat("no partitions told", "m", 0, topic_partitions=None)
    beat("joins with partitions", "m", 0, topic_partitions=owned((topic, [0])))
    beat("no topics told", "m", 0, subscribed_topic_names=None)
    beat("an unknown assignor", "m", 0, server_assignor="mine")
    beat("no assignor", "m", 0, server_assignor="")
    beat("no member, later", "", 1)
    beat("no member leaves", "", -1)
    beat("a group's name with a slash", "m", 0, of=ask.name("a/b"))
    beat("a rack", "m", 0, of=ask.name("racks"), rack_id="here")
    anonymous = heartbeat(ask.name("anonymous"), "", 0)
    ask("no member joins", anonymous, tidy=lambda told: sort_assignment(told) | {"member_id": bool(told["member_id"])})


@scenario(ConsumerGroupHeartbeatRequest)
def two_members(ask: Asking) -> None:
    topic = ask.topic("read", 4)
    group = seen(ask, "group", topic)
    beat = beater(ask, group)
    mine = {"subscribed_topic_names": [topic.name]}
    beat("the first", "a", 0, **mine)
    beat("the second", "b", 0, **mine)
    beat("the first hears of it", "a", 2)
    beat("the first again, silent", "a", 2)
    beat("the second waits", "b", 3)
    beat("the first still has everything", "a", 2, topic_partitions=owned((topic, [0, 1, 2, 3])))
    beat("the first gives back", "a", 2, topic_partitions=owned((topic, [0, 1])))
    beat("the second takes", "b", 3)
    beat("the first in its last epoch, as if the answer was lost", "a", 2, topic_partitions=owned((topic, [0, 1])))
    beat("and with more than it has", "a", 2, topic_partitions=owned((topic, [0, 1, 2])))
    beat("the first in an older epoch", "a", 1, topic_partitions=owned((topic, [0])))
    beat("the second leaves", "b", -1)
    beat("the first has everything again", "a", 3, topic_partitions=owned((topic, [0, 1])))


@scenario(ConsumerGroupHeartbeatRequest)
def assignors(ask: Asking) -> None:
    one, two = ask.topic("one", 3), ask.topic("two", 3)
    # Of several topics, uniform shares out first what comes first in a hash table.
    for name, topics in (("range", [one, two]), ("uniform", [one])):
        group = seen(ask, name, *topics)
        beat = beater(ask, group)
        mine = {"subscribed_topic_names": [each.name for each in topics], "server_assignor": name}
        everything = owned(*((each, [0, 1, 2]) for each in topics))
        beat(f"{name}: the first", "a", 0, **mine)
        beat(f"{name}: the second", "b", 0, **mine)
        beat(f"{name}: the first hears of it", "a", 2, topic_partitions=everything)
        beat(f"{name}: the first starts over", "a", 0, **mine)
        beat(f"{name}: the second has its part", "b", 3)
        beat(f"{name}: a third", "c", 0, **mine)
        beat(f"{name}: the second changes its mind", "b", 3, server_assignor="uniform")


@scenario(ConsumerGroupHeartbeatRequest)
def static_members(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group = seen(ask, "group", topic)
    beat = beater(ask, group)
    mine = {"subscribed_topic_names": [topic.name], "instance_id": "i"}
    beat("joins", "a", 0, **mine)
    beat("stays", "a", 2, instance_id="i")
    beat("stays without saying who", "a", 2)
    beat("another with the name", "b", 0, **mine)
    beat("the same once more", "a", 0, **mine)
    beat("an unknown name", "a", 2, instance_id="j")
    beat("the name and another id", "b", 2, instance_id="i")
    beat("another leaves in its name", "b", -2, instance_id="i")
    beat("an unknown name leaves", "a", -2, instance_id="j")
    beat("leaves for now", "a", -2, instance_id="i")
    beat("stays though it left", "a", 2, instance_id="i")
    beat("comes back", "b", 0, **mine)
    beat("the old id", "a", 2, instance_id="i")
    beat("the old id, without the name", "a", 2)
    beat("leaves for good", "b", -1, instance_id="i")
    beat("again", "b", -1, instance_id="i")


@scenario(ConsumerGroupHeartbeatRequest)
def patterns(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    group = ready(ask, ask.name("group"))
    beat = beater(ask, group)
    beat("no pattern", "m", 0, of=ask.name("broken"), subscribed_topic_regex="(")
    beat("none at all", "m", 0, of=ask.name("none"), subscribed_topic_regex="")
    if ask.version < PATTERNS_SINCE:
        return
    beat(
        "only a pattern that is none", "m", 0, of=ask.name("x"), subscribed_topic_names=None, subscribed_topic_regex="*"
    )
    told = ask.quietly(
        heartbeat(group, "m", 0, subscribed_topic_names=None, subscribed_topic_regex=f"{topic.name}.*"), NEWEST
    )
    assert told.error_code == 0
    until = time.monotonic() + RESOLVED_SECONDS
    while not (told.assignment and told.assignment.topic_partitions):
        assert time.monotonic() < until, "the pattern is not resolved"
        time.sleep(0.02)
        told = ask.quietly(heartbeat(group, "m", told.member_epoch), NEWEST)

    def without_epoch(answer: dict[str, Any]) -> dict[str, Any]:
        return sort_assignment(answer) | {"member_epoch": "*"}

    mine = heartbeat(
        group, "m", told.member_epoch, rebalance_timeout_ms=30_000, subscribed_topic_regex=f"{topic.name}.*",
        topic_partitions=owned((topic, [0, 1])), subscribed_topic_names=[],
    )  # fmt: skip
    ask("what a pattern has found", mine, tidy=without_epoch)
    broken = heartbeat(group, "m", told.member_epoch, subscribed_topic_regex="[")
    ask("another pattern that is none", broken, tidy=without_epoch)
    ask("leaves", heartbeat(group, "m", -1), tidy=without_epoch)


@scenario(ConsumerGroupHeartbeatRequest)
def into_classic_groups(ask: Asking) -> None:
    topic = ask.topic("read", 2)
    mine = {"subscribed_topic_names": [topic.name]}
    malformed, connect, empty = ask.name("malformed"), ready(ask, ask.name("connect")), seen(ask, "empty", topic)
    joined(ask, malformed)
    ask.quietly(
        join(connect, ask.quietly(join(connect, protocol_type="connect"), 5).member_id, protocol_type="connect"), 5
    )
    ask.quietly(commit(empty, topic, partition(0, 1)), 8)
    beat = beater(ask, empty)
    beat("a subscription that is none", "m", 0, of=malformed, **mine)
    beat("a group of connectors", "m", 0, of=connect, **mine)
    beat("a classic group, without joining", "m", 1, of=malformed)
    beat("a classic group is left", "m", -1, of=malformed)
    beat("an empty group", "m", 0, **mine)
    classic = seen(ask, "classic", topic)
    member = ask.quietly(old_join(classic, "", topic), 9).member_id
    generation = ask.quietly(old_join(classic, member, topic), 9).generation_id
    everything = ConsumerProtocolAssignment.AssignedPartition(topic=topic.name, partitions=[0, 1])
    given = b"\0\0" + build(ConsumerProtocolAssignment(assigned_partitions=[everything]), 0)
    shares = [SyncGroupRequest.Assignment(member_id=member, assignment=given)]
    told = ask.quietly(
        SyncGroupRequest(group_id=classic, generation_id=generation, member_id=member, assignments=shares), 3
    )
    assert told.error_code == 0
    beat("a classic group of consumers", "m", 0, of=classic, **mine)
    rejoined = ask.quietly(old_join(classic, member, topic), 9)
    ask.note("the classic member's next generation", rejoined.generation_id)
    beat("and takes what was given back", "m", 2, of=classic)
    beat("and leaves", "m", -1, of=classic)
    beat("and is not there any more", "m", 2, of=classic)


# -- ConsumerGroupDescribe -------------------------------------------------------------------------------


@scenario(ConsumerGroupDescribeRequest)
def described(ask: Asking) -> None:
    topic, classic = ask.topic("read", 2), ask.name("classic")
    joined(ask, classic)
    one = new_group(ask, topic, "a", group="one")
    two = new_group(ask, topic, "a", "b", group="two")
    static = new_group(ask, topic, "s", group="static", instance_id="i", rack_id="here", server_assignor="range")
    empty = new_group(ask, topic, "a", group="empty")
    ask.quietly(heartbeat(empty, "a", -1), NEWEST)
    mixed, _, _ = mixed_group(ask, topic)

    def tidy(told: dict[str, Any]) -> dict[str, Any]:
        for group in told["groups"]:
            for member in group["members"]:
                if member["member_id"] not in "abs" and member["member_id"] != "new":
                    member["member_id"] = "drawn"
            group["members"].sort(key=lambda each: each["member_id"])
        told["groups"].sort(key=repr)
        return told

    def describe(case: str, *groups: str, **more: Any) -> None:
        ask(case, ConsumerGroupDescribeRequest(group_ids=list(groups), **more), tidy=tidy)

    describe("one member", one)
    describe("two members", two)
    describe("a static member", static)
    describe("a classic member among them", mixed)
    describe("an empty group", empty)
    describe("a classic group", classic)
    describe("an unknown group", ask.name("unknown"))
    describe("no group's name", "")
    describe("none")
    describe("the same twice", one, one)
    describe("several", one, classic, ask.name("unknown"), empty)
    describe("operations", one, include_authorized_operations=True)
    describe("operations of an unknown group", ask.name("unknown"), include_authorized_operations=True)
