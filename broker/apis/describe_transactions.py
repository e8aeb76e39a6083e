"""DescribeTransactions: the state of transactions, by transactional id.

Each id is answered by itself, by its coordinator only.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_transaction import transaction_shard
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.records import by_topic
from trilogue.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = DescribeTransactionsResponse.TransactionState


@handles(DescribeTransactionsRequest)
def describe_transactions(
    broker: Broker, request: DescribeTransactionsRequest, peer: Peer
) -> DescribeTransactionsResponse | Later[DescribeTransactionsResponse]:
    return broker.turns.each(
        request.transactional_ids,
        lambda transactional_id: describe(broker, peer, transactional_id),
        lambda states: DescribeTransactionsResponse(transaction_states=states),
    )


def describe(broker: Broker, peer: Peer, transactional_id: str) -> Answer:
    try:
        shard = transaction_shard(broker, peer, Operation.DESCRIBE, transactional_id)
        if not shard.active:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        known = shard.machine.transactions.get(transactional_id)
        if known is None:
            raise BrokerError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    except BrokerError as error:
        return Answer(
            error_code=error.code,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return Answer(
        transactional_id=transactional_id,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
        topics=[Answer.Topic(topic=topic, partitions=indexes) for topic, indexes in by_topic(known.partitions)],
    )
