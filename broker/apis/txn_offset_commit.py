"""TxnOffsetCommit: commit a group's offsets as part of a transaction.

They are stored at once and count when the transaction is committed; until then OffsetFetch may call them unstable.
Answered by the group's coordinator, which first has the transaction's coordinator confirm that the group belongs to
it (KIP-890).  v3+: the group's member is checked.  v5+: committing is adding; no AddOffsetsToTxn comes before.
v6, with topic ids, is of Kafka 4.4.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.admission import Refusals, Writer, guard, vouch
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.coordinators.lookup import partition_of
from trilogue.broker.groups.requests import offsets
from trilogue.broker.groups.requests.offsets import CommitResponse, commit_refusal
from trilogue.broker.groups.world import Caller
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.requests.later import Later, settled
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.transaction import Identity
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from trilogue.wire.errors import BrokerError, ErrorCode

ADDS_SINCE = 5
NO_SEQUENCE = -1

Request = TxnOffsetCommitRequest


@handles(TxnOffsetCommitRequest, "0-5")
def txn_offset_commit(broker: Broker, request: Request, peer: Peer) -> Answer:
    if not request.group_id:
        return commit_refusal(request, ErrorCode.INVALID_GROUP_ID)
    who = caller(peer)
    try:
        key = (OFFSETS_TOPIC, partition_of(broker, OFFSETS_TOPIC, request.group_id))
        partition = led_partition(broker, None, Operation.WRITE, *key)
    except BrokerError:
        return commit_refusal(request, ErrorCode.NOT_COORDINATOR)
    identity = Identity(request.producer_id, request.producer_epoch)
    known = partition.log.producer(identity.producer_id)
    if known is not None and known.epoch == identity.epoch and known.transaction_start >= 0:
        return commit(broker, request, peer, who)
    adds = peer.version >= ADDS_SINCE
    writer = Writer(request.transactional_id, adds=adds, knows_abortable=adds)
    standing = guard(broker, partition, writer, identity, NO_SEQUENCE)
    refused = vouch(broker, peer, writer, identity, {key: (partition, standing)})
    if isinstance(refused, dict):
        return commit_if(broker, request, peer, who, refused)
    return when_vouched(broker, request, peer, who, refused)


async def when_vouched(
    broker: Broker, request: Request, peer: Peer, who: Caller, refused: Later[Refusals]
) -> CommitResponse:
    return await settled(commit_if(broker, request, peer, who, await refused))


def commit_if(
    broker: Broker, request: Request, peer: Peer, who: Caller, refused: Refusals
) -> CommitResponse | Later[CommitResponse]:
    """Unless the transaction's coordinator has refused it."""
    for problem in refused.values():
        # Producers understand of a commit that the coordinator is not ready, not that replicas are too few.
        waits = problem.code == ErrorCode.NOT_ENOUGH_REPLICAS
        return commit_refusal(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if waits else problem.code)
    return commit(broker, request, peer, who)


def commit(broker: Broker, request: Request, peer: Peer, who: Caller) -> CommitResponse | Later[CommitResponse]:
    return ask_group(
        broker,
        peer,
        Operation.READ,
        request.group_id,
        offsets.commit_in_transaction,
        request,
        who,
        refuse=lambda code: commit_refusal(request, code),
    )
