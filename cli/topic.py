"""Create, list, describe, delete and configure topics.

trilogue topic create orders --partitions 3 --config retention.ms=60000
trilogue topic list
trilogue topic describe orders
trilogue topic config orders --set cleanup.policy=compact --unset retention.ms
trilogue topic delete orders
"""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trilogue.cli import connecting
from trilogue.cli.failed import Failed
from trilogue.cli.output import say, show_facts, show_json, show_rows

if TYPE_CHECKING:
    from trilogue.client.client import Client
    from trilogue.wire.apis.metadata import MetadataResponse

TOPIC = 2
"""The resource type of topics, in the APIs for settings."""
SET, DELETE = 0, 1
SOURCES = {1: "topic", 2: "broker", 3: "all brokers", 4: "broker's file", 5: "default"}
DEFAULT = -1
"""Partitions or replicas: what the broker has as its default."""


def add_to(command: argparse.ArgumentParser) -> None:
    verbs = command.add_subparsers(metavar="VERB")

    def verb(name: str, purpose: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        connecting.add_options(made)
        made.set_defaults(run=run)
        return made

    create = verb("create", "make topics", run_create)
    create.add_argument("name", nargs="+")
    create.add_argument("--partitions", metavar="N", type=int, default=DEFAULT, help="how many (the broker's default)")
    create.add_argument("--replication", metavar="N", type=int, default=DEFAULT, help="copies of each")
    create.add_argument("--config", metavar="NAME=VALUE", type=pair, action="append", default=[], help="a setting")
    create.add_argument("--if-not-exists", action="store_true", help="fine if it is there already")

    show = verb("list", "the names of all topics", run_list)
    show.add_argument("--internal", action="store_true", help="those of the broker itself too")

    describe = verb("describe", "partitions, leaders and offsets of topics", run_describe)
    describe.add_argument("name", nargs="+")

    delete = verb("delete", "remove topics, with all their records", run_delete)
    delete.add_argument("name", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="fine if it is not there")

    config = verb("config", "show or change a topic's settings", run_config)
    config.add_argument("name")
    config.add_argument("--set", metavar="NAME=VALUE", type=pair, action="append", default=[], help="set it")
    config.add_argument("--unset", metavar="NAME", action="append", default=[], help="back to the default")
    config.add_argument("--all", action="store_true", help="show those that have their default value too")


def pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


# -- create and delete -----------------------------------------------------------------------------


def run_create(options: argparse.Namespace) -> None:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from trilogue.wire.errors import BrokerError, ErrorCode
    from trilogue.wire.ids import uuid_text

    configs = [CreateTopicsRequest.Topic.Config(name=name, value=value) for name, value in options.config]
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.Topic(
                name=name,
                num_partitions=options.partitions,
                replication_factor=options.replication,
                assignments=[],
                configs=configs,
            )
            for name in options.name
        ],
        timeout_ms=int(options.timeout * 1000),
    )

    async def work(client: "Client") -> None:
        made, problems = [], []
        for each in (await client.call_controller(request, CreateTopicsResponse)).topics:
            try:
                check(each.error_code, each.error_message)
                made.append((each.name, uuid_text(each.topic_id), each.num_partitions, each.replication_factor))
            except BrokerError as error:
                if not (options.if_not_exists and error.code == ErrorCode.TOPIC_ALREADY_EXISTS):
                    problems.append(f"{each.name}: {error}")
        report(options, "created", ("name", "id", "partitions", "replication"), made, problems)

    connecting.talk(options, work)


def run_delete(options: argparse.Namespace) -> None:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from trilogue.wire.errors import BrokerError, ErrorCode
    from trilogue.wire.schema import ZERO_UUID

    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.Topic(name=name, topic_id=ZERO_UUID) for name in options.name],
        topic_names=options.name,
        timeout_ms=int(options.timeout * 1000),
    )

    async def work(client: "Client") -> None:
        gone, problems = [], []
        for each in (await client.call_controller(request, DeleteTopicsResponse)).responses:
            try:
                check(each.error_code)
                gone.append((each.name,))
            except BrokerError as error:
                missing = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if not (options.if_exists and missing):
                    problems.append(f"{each.name}: {'there is no such topic' if missing else error}")
        report(options, "deleted", ("name",), gone, problems)

    connecting.talk(options, work)


def report(
    options: argparse.Namespace, done: str, columns: tuple[str, ...], rows: list[Any], problems: list[str]
) -> None:
    """What was done and, if there is any, what was not: that is a failure, of all the rest's success."""
    if options.json:
        show_rows(columns, rows, as_json=True)
    else:
        for row in rows:
            say(f"{done} {row[0]}")
    if problems:
        raise Failed("; ".join(problems))


# -- list and describe -----------------------------------------------------------------------------


def run_list(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        topics = sorted((await client.metadata(None)).topics, key=lambda topic: topic.name or "")
        rows = [
            (topic.name, len(topic.partitions), len(topic.partitions[0].replica_nodes) if topic.partitions else 0)
            for topic in topics
            if options.internal or not topic.is_internal
        ]
        show_rows(("name", "partitions", "replication"), rows, as_json=options.json)

    connecting.talk(options, work)


def run_describe(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        described = [await describe(client, name) for name in options.name]
        if options.json:
            show_json(described)
            return
        for number, topic in enumerate(described):
            partitions = topic.pop("partitions")
            rows = [tuple(each.values()) for each in partitions]
            if sys.stdout.isatty():
                print("\n" * bool(number), end="")
                show_facts({**topic, "partitions": len(partitions)})
                print()
                show_rows(tuple(partitions[0]), rows)
            else:
                show_rows(("topic", *partitions[0]), [(topic["name"], *row) for row in rows])

    connecting.talk(options, work)


async def describe(client: "Client", name: str) -> dict[str, Any]:
    from trilogue.client.offsets import EARLIEST, LATEST, offsets
    from trilogue.wire.ids import uuid_text

    topic = await existing(client, name)
    partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
    led = [each.partition_index for each in partitions if each.leader_id >= 0]
    starts, ends = await offsets(client, name, led, EARLIEST), await offsets(client, name, led, LATEST)
    return {
        "name": name,
        "id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": each.partition_index,
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "epoch": each.leader_epoch,
                "replicas": each.replica_nodes,
                "isr": each.isr_nodes,
                "start_offset": starts.get(each.partition_index),
                "end_offset": ends.get(each.partition_index),
            }
            for each in partitions
        ],
    }


async def existing(client: "Client", name: str) -> "MetadataResponse.Topic":
    """A topic that has to be there."""
    from trilogue.wire.errors import BrokerError, ErrorCode

    try:
        return await client.topic(name)
    except BrokerError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise Failed(f"there is no topic {name}; `trilogue topic list` lists them") from None


# -- config ----------------------------------------------------------------------------------------


def run_config(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        await existing(client, options.name)
        if options.set or options.unset:
            await alter(client, options)
        else:
            await show_config(client, options)

    connecting.talk(options, work)


async def alter(client: "Client", options: argparse.Namespace) -> None:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    resource = IncrementalAlterConfigsRequest.Resource
    changes = [
        *(resource.Config(name=name, config_operation=SET, value=value) for name, value in options.set),
        *(resource.Config(name=name, config_operation=DELETE, value=None) for name in options.unset),
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=TOPIC, resource_name=options.name, configs=changes)], validate_only=False
    )
    (answer,) = (await client.call_controller(request, IncrementalAlterConfigsResponse)).responses
    check(answer.error_code, answer.error_message)
    if options.json:
        await show_config(client, options)
    else:
        say(f"configured {options.name}")


async def show_config(client: "Client", options: argparse.Namespace) -> None:
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

    resource = DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name=options.name, configuration_keys=None)
    (result,) = (await client.call(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)).results
    check(result.error_code, result.error_message)
    rows = [
        (each.name, each.value, SOURCES.get(each.config_source, "unknown"))
        for each in sorted(result.configs, key=lambda each: each.name)
        if options.all or each.config_source == 1
    ]
    show_rows(("name", "value", "from"), rows, as_json=options.json)
