"""Transactions: adding, ending, marking, and what is told about them."""

import time
from collections.abc import Iterator
from typing import Any

from compat_tests.differential.asking import Asking, Topic, batch, scenario
from compat_tests.differential.producers import RETRIABLE, TRANSACTIONS, Producer, added, coordinator, finished
from compat_tests.differential.scenarios.groups import ready
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from trilogue.wire.apis.add_partitions_to_txn import Topic as Added
from trilogue.wire.apis.describe_transactions import DescribeTransactionsRequest
from trilogue.wire.apis.end_txn import EndTxnRequest
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest
from trilogue.wire.apis.list_transactions import ListTransactionsRequest
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest

WRITING_ADDS = 12
"""From this version of Produce on, writing adds the partition to the transaction."""


def begun(ask: Asking, name: str) -> tuple[str, int, int]:
    """A transactional id with a producer: id, producer id, epoch."""
    full = ask.name(name)
    coordinator(ask, full, TRANSACTIONS)
    wish = InitProducerIdRequest(transactional_id=full, transaction_timeout_ms=60_000)
    answer = ask.until(lambda told: told.error_code not in RETRIABLE, wish, 4)
    assert answer.error_code == 0, answer
    return full, answer.producer_id, answer.producer_epoch


def add(ask: Asking, who: tuple[str, int, int], topic: Topic, *partitions: int) -> None:
    """Quietly, and until it is done."""
    wanted = [Added(name=topic.name, partitions=list(partitions))]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=who[0],
        v3_and_below_producer_id=who[1],
        v3_and_below_producer_epoch=who[2],
        v3_and_below_topics=wanted,
    )
    ask.until(added, request, 3)


def strangers(who: tuple[str, int, int]) -> Iterator[tuple[str, tuple[str, int, int]]]:
    """Those who are not quite who they say they are."""
    name, producer, epoch = who
    yield "a wrong producer", (name, producer + 100_000, epoch)
    yield "an older epoch", (name, producer, epoch - 1)
    yield "a later epoch", (name, producer, epoch + 1)
    yield "an unknown id", (name + "-unknown", producer, epoch)
    yield "no id", ("", producer, epoch)


@scenario(InitProducerIdRequest)
def transactional(ask: Asking) -> None:
    name, producer, epoch = begun(ask, "first")

    def start(case: str, **more: Any) -> None:
        fields: dict[str, Any] = {"transactional_id": name, "transaction_timeout_ms": 60_000}
        ask(case, InitProducerIdRequest(**(fields | more)))

    start("again")
    start("another", transactional_id=ask.name("second"))
    start("too patient", transaction_timeout_ms=900_001)
    start("as patient as can be", transaction_timeout_ms=900_000)
    start("without patience", transaction_timeout_ms=0)
    start("with negative patience", transaction_timeout_ms=-1)
    start("back with an old epoch", producer_id=producer, producer_epoch=epoch)
    start("back with another producer's id", producer_id=producer + 100_000, producer_epoch=0)
    start("back with an epoch that will be", producer_id=producer, producer_epoch=1000)
    start("nobody comes back", transactional_id=ask.name("third"), producer_id=producer, producer_epoch=0)


@scenario(AddPartitionsToTxnRequest)
def adding(ask: Asking) -> None:
    topic = ask.topic("added", 2)
    who = begun(ask, "adding")

    def ask_for(case: str, who: tuple[str, int, int], *topics: tuple[str, list[int]], verify: bool = False) -> None:
        wanted = [Added(name=name, partitions=partitions) for name, partitions in topics]
        name, producer, epoch = who
        transaction = AddPartitionsToTxnRequest.Transaction(
            transactional_id=name, producer_id=producer, producer_epoch=epoch, verify_only=verify, topics=wanted
        )
        request = AddPartitionsToTxnRequest(
            transactions=[transaction],
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=wanted,
        )
        ask(case, request, tidy=sort_topics)

    if ask.version >= 4:
        ask_for("verified before it was added", who, (topic.name, [0]), verify=True)
    ask_for("one", who, (topic.name, [0]))
    ask_for("again", who, (topic.name, [0]))
    ask_for("another", who, (topic.name, [1]))
    ask_for("an unknown partition", who, (topic.name, [7]))
    ask_for("an unknown topic", who, (ask.name("unknown"), [0]))
    ask_for("a known and an unknown topic", who, (topic.name, [0]), (ask.name("unknown"), [0]))
    ask_for("no topics", who)
    if ask.version >= 4:
        ask_for("verified", who, (topic.name, [0]), verify=True)
    for case, other in strangers(who):
        ask_for(case, other, (topic.name, [0]))


def sort_topics(told: dict[str, Any]) -> dict[str, Any]:
    """Topics and partitions come in the order of a hash table."""
    for each in told.get("results_by_transaction", ()):
        each["topic_results"].sort(key=repr)
    if "results_by_topic_v3_and_below" in told:
        told["results_by_topic_v3_and_below"].sort(key=repr)
    return told


@scenario(AddOffsetsToTxnRequest)
def adding_offsets(ask: Asking) -> None:
    group = ready(ask, ask.name("group"))
    who = begun(ask, "offsets")

    def add_group(case: str, who: tuple[str, int, int], group: str) -> None:
        name, producer, epoch = who
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer, producer_epoch=epoch, group_id=group
        )
        ask(case, request)

    add_group("a group", who, group)
    add_group("again", who, group)
    add_group("a group that is not there", who, ask.name("unknown"))
    add_group("no group", who, "")
    add_group("a long name", who, "x" * 300)
    for case, other in strangers(who):
        add_group(case, other, group)


@scenario(EndTxnRequest)
def ending(ask: Asking) -> None:
    topic = ask.topic("ended")

    def end(case: str, who: tuple[str, int, int], commits: bool = True) -> Any:
        name, producer, epoch = who
        asked = EndTxnRequest(transactional_id=name, producer_id=producer, producer_epoch=epoch, committed=commits)
        return ask(case, asked)

    end("nothing to commit", begun(ask, "empty"))
    end("nothing to abort", begun(ask, "empty too"), False)
    for commits, name in ((True, "committed"), (False, "aborted")):
        who = begun(ask, name)
        add(ask, who, topic, 0)
        end(name, who, commits)
        finished(ask, who[0])
        end(f"{name} again", who, commits)
        end(f"{name}, and now the other way", who, not commits)
    who = begun(ask, "open")
    add(ask, who, topic, 0)
    for case, other in strangers(who):
        end(case, other)


@scenario(TxnOffsetCommitRequest)
def committing_offsets(ask: Asking) -> None:
    topic, group = ask.topic("offsets", 2), ready(ask, ask.name("group"))
    who = begun(ask, "committing")
    enlist = AddOffsetsToTxnRequest(transactional_id=who[0], producer_id=who[1], producer_epoch=who[2], group_id=group)
    ask.until(lambda answer: answer.error_code not in RETRIABLE, enlist, 3)

    def commit(case: str, who: tuple[str, int, int], *parts: int, to: str = topic.name, **more: Any) -> None:
        name, producer, epoch = who
        partitions = [
            TxnOffsetCommitRequest.Topic.Partition(partition_index=each, committed_offset=5, committed_metadata="")
            for each in parts
        ]
        fields: dict[str, Any] = {
            "transactional_id": name,
            "group_id": group,
            "producer_id": producer,
            "producer_epoch": epoch,
            "topics": [TxnOffsetCommitRequest.Topic(name=to, partitions=partitions)],
        }
        ask(case, TxnOffsetCommitRequest(**(fields | more)))

    commit("one", who, 0)
    commit("two", who, 0, 1)
    commit("an unknown partition", who, 7)
    commit("an unknown topic", who, 0, to=ask.name("unknown"))
    commit("no partitions", who)
    commit("no topics", who, topics=[])
    commit("a stranger of the group", who, 0, member_id="stranger", generation_id_or_member_epoch=3)
    commit("another generation", who, 0, generation_id_or_member_epoch=3)
    commit("no group", who, 0, group_id="")
    for case, other in strangers(who):
        commit(case, other, 0)


@scenario(ProduceRequest)
def in_transactions(ask: Asking) -> None:
    topic = ask.topic("written", 4)
    adds = ask.version >= WRITING_ADDS
    shop = Producer(ask, "shop", second=adds)

    def write(case: str, partition: int = 0, sequence: int = 0, name: str | None = shop.name, **fields: Any) -> None:
        given = {"producer_id": shop.id, "producer_epoch": shop.epoch, "transactional": True} | fields
        records = batch("x", at_ms=int(time.time() * 1000), base_sequence=sequence, **given)
        data = ProduceRequest.Topic.Partition(index=partition, records=records)
        asked = ProduceRequest.Topic(name=topic.name, topic_id=topic.id, partition_data=[data])
        ask(case, ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5000, topic_data=[asked]))

    write("outside of transactions", 3, transactional=False)
    write("for nobody", name=None)
    write("under an unknown id", name=ask.name("unknown"))
    write("of a stranger", producer_id=shop.id + 1_000_000)
    write("of a later epoch", producer_epoch=shop.epoch + 1)
    write("in the middle", 1, sequence=5)
    write("the first", 0)
    if not adds:
        shop.add(topic, 0, 2)
        write("of a later epoch, after adding", producer_epoch=shop.epoch + 1)
        write("the first, after adding", 0)
    write("the next", 0, sequence=1)
    write("the next, repeated", 0, sequence=1)
    write("outside of the transaction, and still in it", 0, sequence=2, transactional=False)
    write("another partition", 2)
    write("a partition that is not there", 4)
    before = shop.epoch
    shop.end(True)
    write("after the end, as before", 0, sequence=2, producer_epoch=before)
    write("after the end, anew", 0, sequence=0)
    shop.init()
    shop.write(topic, 2)
    old = shop.epoch
    shop.init()
    write("of one who was fenced", 2, sequence=1, producer_epoch=old)


@scenario(WriteTxnMarkersRequest)
def marking(ask: Asking) -> None:
    """Markers by hand, as `kafka-transactions abort` writes them, of producers that have no coordinator."""
    topic = ask.topic("marked", 2)

    def mark(case: str, *markers: tuple[int, int, bool, list[tuple[str, list[int]]]], coordinator: int = 0) -> None:
        made = [
            WriteTxnMarkersRequest.Marker(
                producer_id=producer,
                producer_epoch=epoch,
                transaction_result=commits,
                topics=[
                    WriteTxnMarkersRequest.Marker.Topic(name=name, partition_indexes=parts) for name, parts in where
                ],
                coordinator_epoch=coordinator,
            )
            for producer, epoch, commits, where in markers
        ]
        ask(case, WriteTxnMarkersRequest(markers=made), tidy=sort_markers)

    here = [(topic.name, [0])]
    mark("an abort of nobody", (8001, 0, False, here))
    mark("a commit of nobody", (8002, 0, True, here))
    mark("two partitions", (8003, 0, False, [(topic.name, [0, 1])]))
    mark("two markers", (8004, 0, False, here), (8005, 0, True, here))
    mark("an unknown partition", (8006, 0, False, [(topic.name, [7])]))
    mark("an unknown topic", (8007, 0, False, [(ask.name("unknown"), [0])]))
    mark("a known and an unknown one", (8008, 0, False, [(topic.name, [0, 7])]))
    mark("no topics", (8009, 0, False, []))
    mark("no markers")
    mark("a later coordinator", (8001, 0, False, here), coordinator=5)
    mark("an older coordinator", (8001, 0, False, here), coordinator=4)
    ask.write(topic, batch("a", producer_id=8010, producer_epoch=3, base_sequence=0))
    mark("an older epoch", (8010, 2, False, here))
    mark("the same epoch", (8010, 3, False, here))
    mark("a later epoch", (8010, 4, False, here))


def sort_markers(told: dict[str, Any]) -> dict[str, Any]:
    """Partitions come in the order of a hash table."""
    for marker in told["markers"]:
        for topic in marker["topics"]:
            topic["partitions"].sort(key=lambda each: each["partition_index"])
        marker["topics"].sort(key=lambda each: each["name"])
    return told | {"markers": sorted(told["markers"], key=repr)}


@scenario(DescribeTransactionsRequest)
def describing(ask: Asking) -> None:
    topic = ask.topic("described", 2)
    idle, open_one = begun(ask, "idle"), begun(ask, "open")
    add(ask, open_one, topic, 0, 1)

    def describe(case: str, *names: str) -> None:
        ask(case, DescribeTransactionsRequest(transactional_ids=list(names)), tidy=sort_partitions)

    describe("one that has done nothing", idle[0])
    describe("one that is open", open_one[0])
    describe("both", idle[0], open_one[0])
    describe("an unknown one", ask.name("unknown"))
    describe("a known and an unknown one", ask.name("unknown"), idle[0])
    describe("no name", "")
    describe("the same twice", idle[0], idle[0])
    describe("none")
    describe("a long name", "x" * 300)
    describe("two unknown ones", ask.name("unknown"), ask.name("unknown too"))


def sort_partitions(told: dict[str, Any]) -> dict[str, Any]:
    for each in told["transaction_states"]:
        for topic in each["topics"]:
            topic["partitions"].sort()
    return told


@scenario(ListTransactionsRequest)
def listing(ask: Asking) -> None:
    topic = ask.topic("listed")
    idle, open_one = begun(ask, "idle"), begun(ask, "open")
    add(ask, open_one, topic, 0)

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        found = [each for each in told["transaction_states"] if each["transactional_id"] in ("idle", "open")]
        return told | {"transaction_states": sorted(found, key=repr)}

    def list_them(case: str, **more: Any) -> None:
        asked = ListTransactionsRequest(**({"state_filters": [], "producer_id_filters": []} | more))
        ask(case, asked, tidy=ours_only)

    list_them("all")
    for states in (["Ongoing"], ["Empty"], ["ongoing"], ["nonsense"], ["Ongoing", "nonsense"], ["Empty", "Ongoing"]):
        list_them(f"states {states}", state_filters=states)
    list_them("a producer", producer_id_filters=[idle[1]])
    list_them("an unknown producer", producer_id_filters=[-5])
    list_them("both filters", state_filters=["Ongoing"], producer_id_filters=[idle[1]])
    list_them("running for an hour", duration_filter=3_600_000)
    list_them("running for a moment", duration_filter=0)
    list_them("a pattern", transactional_id_pattern=".*-open")
    list_them("an empty pattern", transactional_id_pattern="")
    list_them("a wrong pattern", transactional_id_pattern="(")
