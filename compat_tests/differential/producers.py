"""A transactional producer for scenarios: sets the scene quietly, whatever is being asked about."""

import time
from typing import Any

from compat_tests.differential.asking import Asking, Topic, batch
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from trilogue.wire.apis.add_partitions_to_txn import Topic as Added
from trilogue.wire.apis.describe_transactions import DescribeTransactionsRequest
from trilogue.wire.apis.end_txn import EndTxnRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest
from trilogue.wire.apis.produce import ProduceRequest

RETRIABLE = (14, 15, 16, 51)
"""Coordinator loading, not available, not it; concurrent transactions."""

GROUPS, TRANSACTIONS = 0, 1


class Producer:
    """`init` gives it an identity; `second` has it go by transaction.version 2."""

    def __init__(self, ask: Asking, name: str, *, second: bool = False) -> None:
        self.ask, self.name, self.second = ask, ask.name(name), second
        self.id = self.epoch = -1
        self.sequence = 0
        coordinator(ask, self.name, TRANSACTIONS)
        self.init()

    def init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        answer = self._until_done(request, 4)
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def add(self, topic: Topic, *partitions: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[Added(name=topic.name, partitions=list(partitions))],
        )
        self.ask.until(added, request, 3)

    def write(self, topic: Topic, partition: int = 0) -> None:
        """One record, in a transaction."""
        if not self.second:
            self.add(topic, partition)
        raw = batch(
            "written",
            at_ms=int(time.time() * 1000),
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        data = ProduceRequest.Topic.Partition(index=partition, records=raw)
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[ProduceRequest.Topic(name=topic.name, partition_data=[data])],
        )
        answer = self.ask.quietly(request, 12 if self.second else 9).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer
        self.sequence += 1

    def end(self, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        answer = self._until_done(request, 5 if self.second else 4)
        if self.second:
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        self.settle()

    def settle(self) -> None:
        """Wait until the markers are written."""
        finished(self.ask, self.name)

    def _until_done(self, request: Any, version: int) -> Any:
        answer = self.ask.until(lambda told: told.error_code not in RETRIABLE, request, version)
        assert answer.error_code == 0, answer
        return answer


def coordinator(ask: Asking, name: str, kind: int) -> None:
    """Wait until somebody looks after this group or transactional id."""
    ask.until(lambda answer: not answer.error_code, FindCoordinatorRequest(key=name, key_type=kind), 2)


def added(answer: Any) -> bool:
    """Whether partitions are in a transaction now.  False if that may still come; all else is a failure."""
    codes = {each.partition_error_code for each in answer.results_by_topic_v3_and_below[0].results_by_partition}
    assert codes <= {0, *RETRIABLE}, answer
    return codes == {0}


def finished(ask: Asking, name: str) -> None:
    """Wait until the markers of a transaction are written."""
    ask.until(
        lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
        DescribeTransactionsRequest(transactional_ids=[name]),
        0,
    )
