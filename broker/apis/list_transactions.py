"""ListTransactions: the transactions that this broker looks after.

Filters by state and producer id; states that nobody knows are named in the answer and match nothing.  v1+: how long it
has been running, counted from its start, which an id without a transaction has always exceeded.  v2+: a pattern
that has to match the whole id.
"""

import re
from collections.abc import Callable

from trilogue.broker.api import handles
from trilogue.broker.connection import Peer
from trilogue.broker.server import Broker
from trilogue.broker.transactions.coordinator import TransactionCoordinator
from trilogue.broker.transactions.states import State
from trilogue.broker.transactions.transaction import Transaction
from trilogue.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

STATES = {state.value for state in State}


@handles(ListTransactionsRequest)
def list_transactions(broker: Broker, request: ListTransactionsRequest, peer: Peer) -> ListTransactionsResponse:
    unknown = [name for name in request.state_filters if name not in STATES]
    try:
        wanted = chooser(request, broker.clock())
        found = [
            ListTransactionsResponse.TransactionState(
                transactional_id=transactional_id,
                producer_id=known.producer_id,
                transaction_state=known.state.value,
            )
            for transactional_id, known in everything(broker)
            if wanted(transactional_id, known)
        ]
    except BrokerError as error:
        return ListTransactionsResponse(error_code=error.code, unknown_state_filters=[], transaction_states=[])
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def everything(broker: Broker) -> list[tuple[str, Transaction]]:
    found: list[tuple[str, Transaction]] = []
    for shard in broker.transactions.shards():
        if not shard.active:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert isinstance(shard.machine, TransactionCoordinator)
        found += shard.machine.transactions.items()
    return found


def chooser(request: ListTransactionsRequest, now_ms: int) -> Callable[[str, Transaction], bool]:
    states, producers = set(request.state_filters), set(request.producer_id_filters)
    try:
        pattern = re.compile(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except re.error as error:
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None

    def wanted(transactional_id: str, known: Transaction) -> bool:
        return (
            (not producers or known.producer_id in producers)
            and (not states or known.state.value in states)
            and (request.duration_filter < 0 or now_ms - known.started_ms > request.duration_filter)
            and (pattern is None or pattern.fullmatch(transactional_id) is not None)
        )

    return wanted
