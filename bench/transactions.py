"""Transactions of one record each by one producer, in both generations: what a client waits for, and what it costs."""

import time
from typing import Any

from bench.asking import Connection
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from trilogue.wire.apis.add_partitions_to_txn import Topic as Added
from trilogue.wire.apis.end_txn import EndTxnRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.errors import ErrorCode
from trilogue.wire.records import Record, build

VALUE = b"x" * 100
AGAIN_SECONDS = 0.001
"""How soon we ask again while the last transaction is being ended.  Java's client waits 20 ms at first."""

NOT_YET = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Producer:
    def __init__(self, address: tuple[str, int], name: str, topic: str, *, second: bool) -> None:
        """`second`: by the second generation (KIP-890), in which nothing is added to a transaction beforehand."""
        self._connection, self._name, self._topic, self._second = Connection(address), name, topic, second
        while self._connection.ask(FindCoordinatorRequest(key=name, key_type=1), 2).error_code:
            time.sleep(0.05)
        answer = self._until_done(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
        self._id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0

    def transact(self) -> None:
        if not self._second:
            self._add()
        self._write()
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=True
        )
        answer = self._until_done(request, 5 if self._second else 4)
        if self._second:
            self._id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0

    def _add(self) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[Added(name=self._topic, partitions=[0])],
        )
        while True:
            answer = self._connection.ask(request, 3).results_by_topic_v3_and_below[0].results_by_partition[0]
            if answer.partition_error_code not in NOT_YET:
                assert answer.partition_error_code == 0, answer
                return
            time.sleep(AGAIN_SECONDS)

    def _write(self) -> None:
        record = Record(0, int(time.time() * 1000), None, VALUE)
        raw = build(
            [record],
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        part = ProduceRequest.Topic.Partition(index=0, records=bytes(raw))
        topics = [ProduceRequest.Topic(name=self._topic, partition_data=[part])]
        request = ProduceRequest(transactional_id=self._name, acks=-1, timeout_ms=10_000, topic_data=topics)
        while True:
            answer = self._connection.ask(request, 12 if self._second else 11).responses[0].partition_responses[0]
            if answer.error_code not in NOT_YET:
                assert answer.error_code == 0, answer
                self._sequence += 1
                return
            time.sleep(AGAIN_SECONDS)

    def _until_done(self, request: EndTxnRequest | InitProducerIdRequest, version: int) -> Any:
        while True:
            answer = self._connection.ask(request, version)
            if answer.error_code not in NOT_YET:
                assert answer.error_code == 0, answer
                return answer
            time.sleep(AGAIN_SECONDS)
