"""ListTransactions: the transactions that this broker looks after.

Filters by state and producer id; states that nobody knows are named in the answer and match nothing.  v1+: how long it
has been running, counted from its start, which an id without a transaction has always exceeded.  v2+: a pattern
that has to match the whole id.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.groups.patterns import matching
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.transactions.states import State
from trilogue.broker.transactions.transaction import Transaction
from trilogue.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

STATES = {state.value for state in State}


@handles(ListTransactionsRequest)
def list_transactions(broker: Broker, request: ListTransactionsRequest, peer: Peer) -> ListTransactionsResponse:
    try:
        found = [
            ListTransactionsResponse.TransactionState(
                transactional_id=transactional_id,
                producer_id=known.producer_id,
                transaction_state=known.state.value,
            )
            for transactional_id, known in chosen(request, everything(broker), broker.clock()).items()
        ]
    except BrokerError as error:
        return ListTransactionsResponse(error_code=error.code, unknown_state_filters=[], transaction_states=[])
    unknown = [name for name in request.state_filters if name not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def everything(broker: Broker) -> dict[str, Transaction]:
    found: dict[str, Transaction] = {}
    for shard in broker.transactions.shards():
        if not shard.active:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        found |= shard.machine.transactions
    return found


def chosen(request: ListTransactionsRequest, known: dict[str, Transaction], now_ms: int) -> dict[str, Transaction]:
    states, producers, longer_ms = set(request.state_filters), set(request.producer_id_filters), request.duration_filter
    pattern = request.transactional_id_pattern
    names = matching(pattern, known) if pattern else known.keys()
    return {
        name: each
        for name, each in known.items()
        if name in names
        and (not producers or each.producer_id in producers)
        and (not states or each.state.value in states)
        and (longer_ms < 0 or now_ms - each.started_ms > longer_ms)
    }
