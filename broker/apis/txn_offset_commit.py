"""TxnOffsetCommit: commit a group's offsets as part of a transaction.

They are stored at once and count when the transaction is committed; until then OffsetFetch may call them unstable.
Answered by the group's coordinator, which first has the transaction's coordinator confirm that the group belongs to
it (KIP-890).  v3+: the group's member is checked.  v5+: committing is adding; no AddOffsetsToTxn comes before.
v6, with topic ids, is of Kafka 4.4.
"""

from collections.abc import Coroutine
from typing import Any

from trilogue.broker.coordinators.admission import ADDS, ask_again, refusals
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.coordinators.ask_transaction import enlist
from trilogue.broker.coordinators.lookup import partition_of
from trilogue.broker.groups.requests import offsets
from trilogue.broker.groups.requests.offsets import CommitResponse, commit_refusal
from trilogue.broker.groups.world import Caller
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.server import Broker
from trilogue.broker.transactions.transaction import Identity
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from trilogue.wire.errors import BrokerError, ErrorCode

ADDS_SINCE = 5
LOOKS = ADDS - 2
"""The Produce that is served like a commit which only asks: it knows no TRANSACTION_ABORTABLE either."""

Request = TxnOffsetCommitRequest


@handles(TxnOffsetCommitRequest, "0-5")
def txn_offset_commit(broker: Broker, request: Request, peer: Peer) -> Answer:
    if not request.group_id:
        return commit_refusal(request, ErrorCode.INVALID_GROUP_ID)
    who = caller(peer)
    adding = peer.version >= ADDS_SINCE
    try:
        place = (OFFSETS_TOPIC, partition_of(broker, OFFSETS_TOPIC, request.group_id))
        partition = broker.replicas.leader(*place)
    except BrokerError:
        return commit_refusal(request, ErrorCode.NOT_COORDINATOR)
    known = partition.log.producer(request.producer_id)
    is_open = known is not None and known.epoch == request.producer_epoch and known.transaction_start >= 0
    if is_open or not (adding or broker.config["transaction.partition.verification.enable"]):
        return commit(broker, request, who)
    identity = Identity(request.producer_id, request.producer_epoch)
    verdicts = enlist(broker, request.transactional_id, identity, frozenset({place}), adding=adding)
    version = ADDS if adding else LOOKS
    if isinstance(verdicts, dict) and ErrorCode.CONCURRENT_TRANSACTIONS not in verdicts.values():
        problem = refusals(verdicts, version).get(place)
        return commit(broker, request, who) if problem is None else refused(request, problem)
    asked = ask_again(broker, request.transactional_id, identity, frozenset({place}), version, verdicts)
    return when_admitted(broker, request, who, asked)


async def when_admitted(
    broker: Broker, request: Request, who: Caller, asked: Coroutine[Any, Any, dict[Any, BrokerError]]
) -> CommitResponse:
    for problem in (await asked).values():
        return refused(request, problem)
    answer = commit(broker, request, who)
    return await answer if isinstance(answer, Coroutine) else answer


def commit(broker: Broker, request: Request, who: Caller) -> CommitResponse | Coroutine[Any, Any, CommitResponse]:
    return ask_group(
        broker,
        request.group_id,
        offsets.commit_in_transaction,
        request,
        who,
        refuse=lambda code: commit_refusal(request, code),
    )


def refused(request: Request, problem: BrokerError) -> CommitResponse:
    """Producers understand of a commit that the coordinator is not ready, not that replicas are too few."""
    waits = problem.code == ErrorCode.NOT_ENOUGH_REPLICAS
    return commit_refusal(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if waits else problem.code)
