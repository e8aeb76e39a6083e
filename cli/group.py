"""List, describe, move and delete groups of consumers.

trilogue group list
trilogue group describe payments
trilogue group reset-offsets payments --to beginning --topic orders:0,1
trilogue group reset-offsets payments --to 2026-01-31T12:00 --execute
trilogue group delete payments
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trilogue.cli import connecting
from trilogue.cli.consume import From, where
from trilogue.cli.failed import Failed
from trilogue.cli.output import say, show_facts, show_json, show_rows
from trilogue.cli.topic import existing, report

if TYPE_CHECKING:
    from trilogue.client.client import Client
    from trilogue.wire.apis.consumer_group_describe import ConsumerGroupDescribeResponse
    from trilogue.wire.apis.describe_groups import DescribeGroupsResponse
    from trilogue.wire.schema import Request, Response

S = TypeVar("S", bound="Response")

Place = tuple[str, int]
"""A topic and a partition of it."""

PLACE = ("topic", "partition")
AT_REST = ("Empty", "Dead")
"""The states of a group without members: only then may somebody else move its offsets."""
NOT_A_MEMBER = -1
NAMED_TOPICS = 9
"""The last version in which OffsetFetch and OffsetCommit name topics; later ones go by their ids."""


class Member(NamedTuple):
    id: str
    instance: str | None
    client: str
    host: str
    partitions: list[Place]


class Group(NamedTuple):
    name: str
    type: str
    state: str
    assignor: str
    members: list[Member]


def add_to(command: argparse.ArgumentParser) -> None:
    verbs = command.add_subparsers(metavar="VERB")

    def verb(name: str, purpose: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        connecting.add_options(made)
        made.set_defaults(run=run)
        return made

    show = verb("list", "all groups, with their type and state", run_list)
    show.add_argument("--state", metavar="STATE", action="append", default=[], help="only those; may be repeated")

    describe = verb("describe", "how far groups have read, what is left, and who reads it", run_describe)
    describe.add_argument("name", nargs="+")
    describe.add_argument("--members", action="store_true", help="the members, in place of the partitions")

    reset = verb(
        "reset-offsets", "show where a group without members would go on reading; --execute moves it", run_reset
    )
    reset.add_argument("name")
    reset.add_argument(
        "--to",
        metavar="WHERE",
        type=where,
        required=True,
        help="beginning, end, an offset, -N for the last N, a time like 2026-01-31T12:00, or @MS; "
        "what lies outside of the log is brought to its nearer end",
    )
    reset.add_argument(
        "--topic",
        metavar="T[:P,...]",
        type=some,
        action="append",
        default=[],
        help="all or these partitions of a topic; may be repeated (all that the group has committed)",
    )
    reset.add_argument("--execute", action="store_true", help="do it; without this, nothing is changed")

    delete = verb("delete", "remove groups without members, with all they have committed", run_delete)
    delete.add_argument("name", nargs="+")


def some(text: str) -> tuple[str, list[int] | None]:
    topic, mark, numbers = text.partition(":")
    try:
        return topic, [int(each) for each in numbers.split(",")] if mark else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"write TOPIC or TOPIC:PARTITION,..., not {text!r}") from None


# -- list and delete -------------------------------------------------------------------------------


def run_list(options: argparse.Namespace) -> None:
    from trilogue.client.coordinators import brokers
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse

    async def work(client: "Client") -> None:
        async def attempt() -> list[tuple[str, ...]]:
            rows: list[tuple[str, ...]] = []
            for link in (await brokers(client)).values():
                request = ListGroupsRequest(states_filter=options.state)
                answer = await link.call(request, ListGroupsResponse, seconds=client.timeout)
                check(answer.error_code)
                rows += [
                    (each.group_id, each.group_type, each.protocol_type, each.group_state) for each in answer.groups
                ]
            return rows

        show_rows(("name", "type", "protocol", "state"), sorted(await client.persist(attempt)), as_json=options.json)

    connecting.talk(options, work)


def run_delete(options: argparse.Namespace) -> None:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
    from trilogue.wire.errors import BrokerError, ErrorCode

    plain = {
        ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
        ErrorCode.NON_EMPTY_GROUP: "it has members; `trilogue group describe` shows them",
    }

    async def work(client: "Client") -> None:
        async def attempt() -> None:
            answer = await ask(client, name, DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse)
            check(answer.results[0].error_code, answer.results[0].error_message)

        gone, problems = [], []
        for name in options.name:
            try:
                await client.persist(attempt)
                gone.append((name,))
            except BrokerError as error:
                problems.append(f"{name}: {plain.get(error.code, error)}")
        report(options, "deleted", ("name",), gone, problems)

    connecting.talk(options, work)


async def ask(client: "Client", name: str, request: "Request", response: "type[S]", *, cap: int | None = None) -> "S":
    """Whoever looks after the group."""
    from trilogue.client.coordinators import GROUP, coordinator

    link = await coordinator(client, GROUP, name)
    return await link.call(request, response, cap=cap, seconds=client.timeout)


# -- describe --------------------------------------------------------------------------------------


def run_describe(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        described = [await describe(client, name) for name in options.name]
        if options.json:
            show_json(described)
            return
        for number, group in enumerate(described):
            tables = {"partitions": group.pop("partitions"), "members": group.pop("members")}
            if sys.stdout.isatty():
                print("\n" * bool(number), end="")
                show_facts({**group, "members": len(tables["members"])})
            for name in ("members",) if options.members else ("partitions", "members"):
                rows = [list(each.values()) for each in tables[name]]
                if sys.stdout.isatty() and rows:
                    print()
                    show_rows(tuple(tables[name][0]), rows)
                elif name == "members" if options.members else name == "partitions":
                    show_rows(("group", name), [(group["name"], *row) for row in rows])

    connecting.talk(options, work)


async def describe(client: "Client", name: str) -> dict[str, Any]:
    group = await the_group(client, name)
    if group is None:
        raise Failed(f"there is no group {name}; `trilogue group list` lists them")
    owners = {place: member.id for member in group.members for place in member.partitions}
    offsets = await committed(client, name)
    ends = await log_ends(client, {*owners, *offsets})
    return {
        "name": name,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "partitions": [
            {
                "topic": place[0],
                "partition": place[1],
                "committed_offset": offsets.get(place),
                "end_offset": ends.get(place),
                "lag": max(0, ends[place] - offsets[place]) if place in offsets and place in ends else None,
                "member": owners.get(place),
            }
            for place in sorted({*owners, *offsets})
        ],
        "members": [
            {
                "member": each.id,
                "instance": each.instance,
                "client": each.client,
                "host": each.host,
                "assigned": [f"{topic}:{partition}" for topic, partition in sorted(each.partitions)],
            }
            for each in sorted(group.members)
        ],
    }


async def the_group(client: "Client", name: str) -> Group | None:
    """As its coordinator describes it: there is one API for groups of the new protocol, and one for all others."""
    from trilogue.client.dialogue import check
    from trilogue.client.errors import NotSpoken
    from trilogue.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
    from trilogue.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
    from trilogue.wire.errors import BrokerError, ErrorCode

    async def new() -> Group:
        request = ConsumerGroupDescribeRequest(group_ids=[name], include_authorized_operations=False)
        (found,) = (await ask(client, name, request, ConsumerGroupDescribeResponse)).groups
        check(found.error_code, found.error_message)
        members = [new_member(each) for each in found.members]
        return Group(name, "consumer", found.group_state, found.assignor_name, members)

    async def classic() -> Group:
        (found,) = (await ask(client, name, DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse)).groups
        check(found.error_code, found.error_message)
        if found.group_state == "Dead":  # how brokers before version 6 say it
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, "there is no such group")
        members = [classic_member(each, found.protocol_type) for each in found.members]
        return Group(name, "classic", found.group_state, found.protocol_data, members)

    try:
        try:
            return await client.persist(new)
        except NotSpoken:
            return await client.persist(classic)
        except BrokerError as error:
            if error.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise
            return await client.persist(classic)
    except BrokerError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def new_member(member: "ConsumerGroupDescribeResponse.Group.Member") -> Member:
    held = [(each.topic_name, number) for each in member.assignment.topic_partitions for number in each.partitions]
    return Member(member.member_id, member.instance_id, member.client_id, member.client_host, held)


def classic_member(member: "DescribeGroupsResponse.Group.Member", protocol: str) -> Member:
    held = assigned(bytes(member.member_assignment)) if protocol == "consumer" else []
    return Member(member.member_id, member.group_instance_id, member.client_id, member.client_host, held)


def assigned(data: bytes) -> list[Place]:
    """What the leader of a group has written for a member: nothing yet, or something else than consumers write."""
    from trilogue.wire.codec import parse
    from trilogue.wire.errors import MalformedMessage
    from trilogue.wire.internal.consumer_protocol import ConsumerProtocolAssignment

    version, newest = int.from_bytes(data[:2], "big", signed=True), ConsumerProtocolAssignment.versions.last
    try:
        it = parse(ConsumerProtocolAssignment, max(0, min(version, newest)), data[2:])
    except MalformedMessage:
        return []
    return [(each.topic, number) for each in it.assigned_partitions for number in each.partitions]


# -- offsets ---------------------------------------------------------------------------------------


async def committed(client: "Client", name: str) -> dict[Place, int]:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

    request = OffsetFetchRequest(
        group_id=name, topics=None, groups=[OffsetFetchRequest.Group(group_id=name, topics=None)]
    )

    async def attempt() -> dict[Place, int]:
        answer = await ask(client, name, request, OffsetFetchResponse, cap=NAMED_TOPICS)
        found = answer.groups[0] if answer.groups else answer
        check(found.error_code)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    return await client.persist(attempt)


async def log_ends(client: "Client", places: Iterable[Place]) -> dict[Place, int]:
    """But for topics and partitions that are no more."""
    from trilogue.client.offsets import LATEST, offsets

    wanted = by_topic(places)
    found = {}
    for topic in (await client.metadata(list(wanted))).topics:
        name = topic.name or ""
        led = {each.partition_index for each in topic.partitions if each.leader_id >= 0}
        ends = await offsets(client, name, sorted(led & {*wanted[name]}), LATEST)
        found.update({(name, partition): offset for partition, offset in ends.items()})
    return found


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found


# -- reset-offsets ---------------------------------------------------------------------------------


def run_reset(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        group = await the_group(client, options.name)
        if group is not None and group.state not in AT_REST:
            raise Failed(f"{options.name} is {group.state}: its offsets can be reset when all members have left")
        before = await committed(client, options.name)
        places = [place for each in options.topic for place in await partitions_of(client, *each)] or [*before]
        if not places:
            raise Failed(f"{options.name} has committed nothing; --topic says what to reset")
        after = await moved(client, places, options.to)
        if options.execute:
            await commit(client, options.name, after)
        columns = (*PLACE, "committed_offset", "new_offset")
        rows = [(*place, before.get(place), after[place]) for place in sorted(after)]
        if options.json:
            partitions = [dict(zip(columns, row, strict=True)) for row in rows]
            show_json({"name": options.name, "executed": options.execute, "partitions": partitions})
        else:
            show_rows(columns, rows)
            say(f"reset {options.name}" if options.execute else "nothing is changed yet: --execute does it")

    connecting.talk(options, work)


async def partitions_of(client: "Client", topic: str, asked: list[int] | None) -> list[Place]:
    there = sorted(each.partition_index for each in (await existing(client, topic)).partitions)
    for each in asked or ():
        if each not in there:
            raise Failed(f"--topic {topic}:{each}: {topic} has partitions 0 to {there[-1]}")
    return [(topic, each) for each in (there if asked is None else asked)]


async def moved(client: "Client", places: Iterable[Place], to: From) -> dict[Place, int]:
    """Where each will go on: inside of its log, or at its end."""
    from trilogue.client.offsets import EARLIEST, LATEST, offsets

    found: dict[Place, int] = {}
    for topic, partitions in by_topic(places).items():
        await existing(client, topic)
        starts, ends = [await offsets(client, topic, partitions, each) for each in (EARLIEST, LATEST)]
        aims = starts if to.text == "beginning" else ends
        if to.timestamp is not None:
            young = await offsets(client, topic, partitions, to.timestamp)
            aims = {each: ends[each] if offset < 0 else offset for each, offset in young.items()}
        elif to.offset is not None:
            aims = {each: to.offset if to.offset >= 0 else ends[each] + to.offset for each in partitions}
        found.update({(topic, each): min(max(aims[each], starts[each]), ends[each]) for each in partitions})
    return found


async def commit(client: "Client", name: str, offsets: dict[Place, int]) -> None:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse

    Topic = OffsetCommitRequest.Topic
    request = OffsetCommitRequest(
        group_id=name,
        generation_id_or_member_epoch=NOT_A_MEMBER,
        topics=[
            Topic(
                name=topic,
                partitions=[
                    Topic.Partition(partition_index=each, committed_offset=offsets[topic, each], committed_metadata="")
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )

    async def attempt() -> None:
        answer = await ask(client, name, request, OffsetCommitResponse, cap=NAMED_TOPICS)
        for topic in answer.topics:
            for each in topic.partitions:
                check(each.error_code)

    await client.persist(attempt)
