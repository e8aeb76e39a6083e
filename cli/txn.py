"""List, describe and abort transactions.

trilogue txn list --state Ongoing
trilogue txn describe payments-1
trilogue txn abort payments-1
trilogue txn abort --at orders:0:1234

`abort ID` ends the open transaction of a transactional id, and fences its producer: should that still live, all it does
next is refused, and it has to begin anew.

`abort --at TOPIC:PARTITION:OFFSET` is for a transaction that hangs: one that is open in a partition since that offset,
and keeps readers of committed records from passing it, while no coordinator knows of it.  One that a coordinator knows
of is not touched: abort that by its id.
"""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from trilogue.cli import connecting
from trilogue.cli.failed import Failed
from trilogue.cli.output import show_facts, show_json, show_rows
from trilogue.cli.topic import existing, report

if TYPE_CHECKING:
    from trilogue.client.client import Client
    from trilogue.wire.apis.describe_producers import DescribeProducersResponse
    from trilogue.wire.apis.describe_transactions import DescribeTransactionsResponse
    from trilogue.wire.apis.list_transactions import ListTransactionsResponse

OPEN = "Ongoing"
NEVER = -1
"""When a transaction has begun that has not."""


class At(NamedTuple):
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


def add_to(command: argparse.ArgumentParser) -> None:
    verbs = command.add_subparsers(metavar="VERB")

    def verb(name: str, purpose: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        connecting.add_options(made)
        made.set_defaults(run=run)
        return made

    show = verb("list", "all transactional ids, with their producers and states", run_list)
    show.add_argument("--state", metavar="STATE", action="append", default=[], help="only those; may be repeated")

    describe = verb("describe", "what a transactional id is doing, since when, and in which partitions", run_describe)
    describe.add_argument("id", nargs="+")

    abort = verb("abort", "end an open transaction, fencing its producer; or one that hangs in a partition", run_abort)
    which = abort.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", help="the transactional id")
    which.add_argument(
        "--at",
        metavar="TOPIC:PARTITION:OFFSET",
        type=place,
        help="one that no coordinator knows of, by where it begins",
    )


def place(text: str) -> At:
    try:
        topic, partition, offset = text.split(":")
        return At(topic, int(partition), int(offset))
    except ValueError:
        raise argparse.ArgumentTypeError(f"write TOPIC:PARTITION:OFFSET, not {text!r}") from None


# -- list and describe -----------------------------------------------------------------------------


def run_list(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        found = await listed(client, states=options.state)
        rows = sorted((each.transactional_id, each.transaction_state, each.producer_id, node) for node, each in found)
        show_rows(("id", "state", "producer_id", "coordinator"), rows, as_json=options.json)

    connecting.talk(options, work)


async def listed(
    client: "Client", *, states: list[str] | None = None, producers: list[int] | None = None
) -> "list[tuple[int, ListTransactionsResponse.TransactionState]]":
    """What all brokers know of, each with the broker that does."""
    from trilogue.client.coordinators import brokers
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse

    request = ListTransactionsRequest(state_filters=states or [], producer_id_filters=producers or [])

    async def attempt() -> list[tuple[int, ListTransactionsResponse.TransactionState]]:
        found = []
        for node, link in (await brokers(client)).items():
            answer = await link.call(request, ListTransactionsResponse, seconds=client.timeout)
            check(answer.error_code)
            if answer.unknown_state_filters:
                raise Failed(f"--state: there is no state {answer.unknown_state_filters[0]}")
            found += [(node, each) for each in answer.transaction_states]
        return found

    return await client.persist(attempt)


def run_describe(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        described = [facts(await transaction(client, each)) for each in options.id]
        if options.json:
            show_json(described)
            return
        for number, each in enumerate(described):
            print("\n" * bool(number), end="")
            show_facts(each)

    connecting.talk(options, work)


async def transaction(client: "Client", name: str) -> "DescribeTransactionsResponse.TransactionState":
    from trilogue.client.coordinators import TRANSACTION, coordinator
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
    from trilogue.wire.errors import BrokerError, ErrorCode

    async def attempt() -> DescribeTransactionsResponse.TransactionState:
        link = await coordinator(client, TRANSACTION, name)
        request = DescribeTransactionsRequest(transactional_ids=[name])
        (found,) = (await link.call(request, DescribeTransactionsResponse, seconds=client.timeout)).transaction_states
        check(found.error_code)
        return found

    try:
        return await client.persist(attempt)
    except BrokerError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        raise Failed(f"there is no transactional id {name}; `trilogue txn list` lists them") from None


def facts(it: "DescribeTransactionsResponse.TransactionState") -> dict[str, Any]:
    begun = it.transaction_start_time_ms
    return {
        "id": it.transactional_id,
        "state": it.transaction_state,
        "producer_id": it.producer_id,
        "producer_epoch": it.producer_epoch,
        "timeout_ms": it.transaction_timeout_ms,
        "started_ms": begun if begun != NEVER else None,
        "open_seconds": max(0, round(time.time() - begun / 1000)) if it.transaction_state == OPEN else None,
        "partitions": [f"{each.topic}:{number}" for each in it.topics for number in sorted(each.partitions)],
    }


# -- abort -----------------------------------------------------------------------------------------


def run_abort(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        if options.at is None:
            await abort_by_id(client, options.id)
            report(options, "aborted the transaction of", ("id",), [(options.id,)], [])
        else:
            await abort_hanging(client, options.at)
            row = (str(options.at), *options.at)
            report(options, "aborted the transaction at", ("at", "topic", "partition", "offset"), [row], [])

    connecting.talk(options, work)


async def abort_by_id(client: "Client", name: str) -> None:
    """Ask for its producer's identity: that aborts what the one before had open."""
    from trilogue.client.coordinators import TRANSACTION, coordinator
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

    found = await transaction(client, name)
    if found.transaction_state != OPEN:
        raise Failed(f"{name} has no open transaction: its state is {found.transaction_state}")
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=found.transaction_timeout_ms)

    async def attempt() -> None:
        link = await coordinator(client, TRANSACTION, name)
        check((await link.call(request, InitProducerIdResponse, seconds=client.timeout)).error_code)

    await client.persist(attempt)


async def abort_hanging(client: "Client", at: At) -> None:
    """Write the mark of an abort into the partition."""
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

    await existing(client, at.topic)
    producer = await hanging(client, at)
    for _, known in await listed(client, producers=[producer.producer_id]):
        state = await transaction(client, known.transactional_id)
        if any(each.topic == at.topic and at.partition in each.partitions for each in state.topics):
            told = f"the transaction at {at} does not hang: it is {state.transaction_state}"
            raise Failed(f"{told}, and `trilogue txn abort {known.transactional_id}` aborts it")
    Marker = WriteTxnMarkersRequest.Marker
    marker = Marker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[Marker.Topic(name=at.topic, partition_indexes=[at.partition])],
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    answer = await client.call_leader(at.topic, at.partition, request, WriteTxnMarkersResponse)
    check(answer.markers[0].topics[0].partitions[0].error_code)


async def hanging(client: "Client", at: At) -> "DescribeProducersResponse.Topic.Partition.ActiveProducer":
    """Whose transaction begins there."""
    from trilogue.client.dialogue import check
    from trilogue.wire.apis.describe_producers import DescribeProducersRequest, DescribeProducersResponse

    topic = DescribeProducersRequest.Topic(name=at.topic, partition_indexes=[at.partition])
    request = DescribeProducersRequest(topics=[topic])
    answer = await client.call_leader(at.topic, at.partition, request, DescribeProducersResponse)
    found = answer.topics[0].partitions[0]
    check(found.error_code, found.error_message)
    for each in found.active_producers:
        if each.current_txn_start_offset == at.offset:
            return each
    raise Failed(f"no open transaction begins at {at}")
