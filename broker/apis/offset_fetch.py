"""OffsetFetch: how far groups have read.

What nobody has committed is -1, without an error; so is everything of a group that is not there.  v2+: null topics
are all.  v7+: `require_stable` refuses what a transaction may still change, partition by partition.  v8+: several
groups.  v9+: members of the new consumer protocol say who they are.  v10+: topics by id.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.groups.requests import offsets
from trilogue.broker.groups.requests.offsets import fetch_refusal, no_offset
from trilogue.broker.requests.later import Later, then, together
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

SEVERAL_SINCE = 8
ERROR_SINCE = 2
"""Of the whole answer; before, every partition carries it."""

Asked = OffsetFetchRequest.Group
Found = OffsetFetchResponse.Group


@handles(OffsetFetchRequest)
def offset_fetch(broker: Broker, request: OffsetFetchRequest, peer: Peer) -> Answer:
    if peer.version >= SEVERAL_SINCE:
        found = [fetch(broker, asked, request.require_stable, peer) for asked in request.groups]
        return together(found, lambda groups: OffsetFetchResponse(groups=groups))
    topics = request.topics
    asked = Asked(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [Asked.Topic(name=each.name, partition_indexes=each.partition_indexes) for each in topics],
    )
    version = peer.version
    return then(fetch(broker, asked, request.require_stable, peer), lambda group: of_one(group, asked, version))


def fetch(broker: Broker, asked: Asked, stable: bool, peer: Peer) -> Found | Later[Found]:
    return ask_group(
        broker,
        peer,
        Operation.DESCRIBE,
        asked.group_id,
        offsets.fetch,
        asked,
        stable,
        caller(peer),
        refuse=lambda code: fetch_refusal(asked.group_id, code),
    )


def of_one(group: Found, asked: Asked, version: int) -> OffsetFetchResponse:
    if group.error_code and version < ERROR_SINCE:
        group.topics = [
            Found.Topic(
                name=each.name, partitions=[no_offset(index, group.error_code) for index in each.partition_indexes]
            )
            for each in asked.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.Topic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.Topic.Partition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
