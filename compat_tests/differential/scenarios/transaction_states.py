"""Transactions from state to state, in both generations: what comes first, again, too late, or from somebody else."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from compat_tests.differential.producers import Producer
from trilogue.wire.apis.end_txn import EndTxnRequest
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest
from trilogue.wire.apis.list_transactions import ListTransactionsRequest
from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest

KNOWS_IDENTITY = 3
"""From here on InitProducerId may say who it was."""
BUMPS = 5
"""From here on EndTxn raises the epoch."""


@scenario(InitProducerIdRequest)
def succession(ask: Asking) -> None:
    topic = ask.topic("written")

    def init(case: str, who: Producer, **fields: Any) -> Any:
        return ask(case, InitProducerIdRequest(transactional_id=who.name, transaction_timeout_ms=60_000, **fields))

    shop = Producer(ask, "shop")
    init("again", shop)
    if ask.version >= KNOWS_IDENTITY:
        shop.init()
        known = {"producer_id": shop.id, "producer_epoch": shop.epoch}
        init("as who it was", shop, **known)
        init("as who it was, repeated", shop, **known)
        init("as nobody", shop)
        init("as who it was, and somebody has come since", shop, **known)
    for second in (False, True):
        how = "second" if second else "first"
        busy = Producer(ask, f"busy-{how}", second=second)
        busy.write(topic)
        init(f"while it writes, {how} generation", busy)
        busy.settle()
        init(f"after it was fenced, {how} generation", busy)
        busy.init()
        busy.write(topic)
        busy.end(True)
        init(f"after a commit, {how} generation", busy)


@scenario(EndTxnRequest)
def deciding(ask: Asking) -> None:
    topic = ask.topic("written")
    second = ask.version >= BUMPS

    def end(case: str, who: Producer, committed: bool, **fields: Any) -> None:
        given = {"transactional_id": who.name, "producer_id": who.id, "producer_epoch": who.epoch} | fields
        answer = ask(case, EndTxnRequest(**given, committed=committed))
        who.settle()
        if second and answer.error_code == 0 and not fields:
            who.epoch, who.sequence = answer.producer_epoch, 0

    shop = Producer(ask, "shop", second=second)
    for committed in (True, False):
        what, other = ("commit", "abort") if committed else ("abort", "commit")
        shop.write(topic)
        end(f"{what} of a later epoch", shop, committed, producer_epoch=shop.epoch + 1)
        before = shop.epoch
        end(what, shop, committed)
        end(f"{what} repeated", shop, committed, producer_epoch=before)
        end(f"{what}, then {other} as before", shop, not committed, producer_epoch=before)
        end(f"{what}, then commit of nothing", shop, True)
        end(f"{what}, then abort of nothing", shop, False)
    heir = Producer(ask, "heir", second=second)
    heir.write(topic)
    old = heir.epoch
    heir.init()
    end("commit by one who was fenced", heir, True, producer_epoch=old)
    end("abort by one who was fenced", heir, False, producer_epoch=old)


@scenario(ListTransactionsRequest)
def filtering(ask: Asking) -> None:
    topic = ask.topic("written")
    new, busy, done = Producer(ask, "new"), Producer(ask, "busy"), Producer(ask, "done", second=True)
    busy.write(topic)
    done.write(topic)
    done.end(True)

    def choose(case: str, **fields: Any) -> None:
        wanted = {"state_filters": [], "producer_id_filters": [new.id, busy.id, done.id]} | fields
        ask(case, ListTransactionsRequest(**wanted), tidy=sorted_states)

    choose("by producers")
    choose("by one producer", producer_id_filters=[busy.id])
    choose("by two states", state_filters=["Empty", "CompleteCommit"])
    choose("by a state in small letters", state_filters=["ongoing", "Empty"])
    if ask.version >= 1:
        choose("for long", duration_filter=100_000)
        choose("for any time", duration_filter=-1)
    if ask.version >= 2:
        choose("by a pattern", transactional_id_pattern=f".*{ask.name('')}[bd].*")
        choose("by a part of the name", transactional_id_pattern="busy")
        choose("by no pattern", transactional_id_pattern="")
        choose("by what is no pattern", transactional_id_pattern="(")


def sorted_states(told: dict[str, Any]) -> dict[str, Any]:
    told["transaction_states"].sort(key=lambda each: each["transactional_id"])
    return told


@scenario(WriteTxnMarkersRequest)
def by_epoch(ask: Asking) -> None:
    topic = ask.topic("written")
    Marker = WriteTxnMarkersRequest.Marker

    def mark(case: str, who: Producer, **fields: Any) -> None:
        given = {
            "producer_id": who.id, "producer_epoch": who.epoch, "transaction_result": False, "coordinator_epoch": 5,
            "transaction_version": 0,
        } | fields  # fmt: skip
        topics = [Marker.Topic(name=topic.name, partition_indexes=[0])]
        ask(case, WriteTxnMarkersRequest(markers=[Marker(**given, topics=topics)]))

    shop = Producer(ask, "shop")
    shop.write(topic)
    mark("abort", shop)
    mark("again", shop)
    mark("of a coordinator long gone", shop, coordinator_epoch=4)
    mark("without an epoch", shop, producer_epoch=-1)
    mark("of a later epoch", shop, producer_epoch=shop.epoch + 3)
    mark("of an earlier epoch", shop)
    if ask.version >= 2:
        bank = Producer(ask, "bank", second=True)
        bank.write(topic)
        mark("the second generation has to raise the epoch", bank, transaction_version=2)
        mark("and so it does", bank, producer_epoch=bank.epoch + 1, transaction_version=2)
        mark("and again", bank, producer_epoch=bank.epoch + 1, transaction_version=2)
