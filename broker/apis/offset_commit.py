"""OffsetCommit: a group remembers how far it has read.

Each partition is answered by itself; one that does not exist is refused, the others proceed.  v0: no member, no
generation, as of simple consumers since.  v1: the client may say when.  v2-4: the client may say for how long.
v6+: leader epochs.  v7+: static members.  v9+: members of the new consumer protocol.  v10+: topics by id.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.groups.requests import offsets
from trilogue.broker.groups.requests.offsets import commit_refusal
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.offset_commit import OffsetCommitRequest


@handles(OffsetCommitRequest)
def offset_commit(broker: Broker, request: OffsetCommitRequest, peer: Peer) -> Answer:
    return ask_group(
        broker,
        peer,
        Operation.READ,
        request.group_id,
        offsets.commit,
        request,
        caller(peer),
        refuse=lambda code: commit_refusal(request, code),
    )
