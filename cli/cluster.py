"""Show the brokers of a cluster, and how much there is on them.

trilogue cluster
trilogue cluster --json --bootstrap 10.0.0.1:9092
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from trilogue.cli import connecting
from trilogue.cli.output import show_facts, show_json, show_rows

if TYPE_CHECKING:
    from trilogue.client.client import Client

COLUMNS = ("id", "host", "port", "rack", "controller")


def add_to(command: argparse.ArgumentParser) -> None:
    connecting.add_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        found = await client.metadata(None)
        facts: dict[str, Any] = {
            "cluster_id": found.cluster_id,
            "controller": found.controller_id,
            "topics": len(found.topics),
            "partitions": sum(len(topic.partitions) for topic in found.topics),
        }
        rows = [
            (each.node_id, each.host, each.port, each.rack, each.node_id == found.controller_id)
            for each in sorted(found.brokers, key=lambda each: each.node_id)
        ]
        if options.json:
            show_json({**facts, "brokers": [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
            return
        if sys.stdout.isatty():
            show_facts(facts)
            print()
        show_rows(COLUMNS, rows)

    connecting.talk(options, work)
