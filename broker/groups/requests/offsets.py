"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete: from requests to records and back.

Whether a partition exists is looked up in the image.  The answer names topics as the request did: by id from v10 on.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from trilogue.broker.cluster.image import Image
from trilogue.broker.groups.coordinator import GroupCoordinator, stores
from trilogue.broker.groups.offsets import LATEST_MS, NEVER_MS, Committed, Offsets, tombstone
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.effects import Effect, Put, Reply, effects
from trilogue.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from trilogue.wire.apis.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

GROUP_NOT_FOUND_SINCE = 9
"""Since this OffsetCommit a group that is not there is called so; before, its generation was wrong."""

BY_ID_SINCE = 10
"""OffsetCommit and OffsetFetch name topics by id from here on."""

UNKNOWN = -1
"""The offset of a partition that nothing was committed for."""

CommitRequest = OffsetCommitRequest | TxnOffsetCommitRequest
CommitResponse = OffsetCommitResponse | TxnOffsetCommitResponse
FetchGroup = OffsetFetchResponse.Group
FetchTopic = OffsetFetchResponse.Group.Topic
FetchPartition = OffsetFetchResponse.Group.Topic.Partition


# -- committing ------------------------------------------------------------------------------------


@effects
def commit(
    coordinator: GroupCoordinator, now: float, request: OffsetCommitRequest, caller: Caller, ticket: Any
) -> Iterator[Effect]:
    member_id, epoch = request.member_id, request.generation_id_or_member_epoch
    group = coordinator.groups.get(request.group_id)
    code = ErrorCode.NONE
    try:
        if group is not None:
            group.check_commit(member_id, request.group_instance_id, epoch, caller.version)
            group.touch(now, member_id)
        elif epoch >= 0:
            found = caller.version >= GROUP_NOT_FOUND_SINCE
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND if found else ErrorCode.ILLEGAL_GENERATION)
    except BrokerError as error:
        code = error.code

    def may(topic_id: bytes, index: int) -> ErrorCode:
        return code if code or group is None else group.may_commit(member_id, epoch, (topic_id, index))

    puts, answer = weighed(request, coordinator.world, may, by_id=caller.version >= BY_ID_SINCE)
    yield from stores(puts)
    yield Reply(ticket, answer)


@effects
def commit_in_transaction(
    coordinator: GroupCoordinator, now: float, request: TxnOffsetCommitRequest, caller: Caller, ticket: Any
) -> Iterator[Effect]:
    """Stored now, counted when the transaction is committed.  Members may commit in any state of the group."""
    member_id, epoch = request.member_id, request.generation_id_or_member_epoch
    group = coordinator.groups.get(request.group_id)
    code = ErrorCode.NONE
    try:
        if group is not None:
            group.check_commit_in_transaction(member_id, request.group_instance_id, epoch)
        elif epoch >= 0:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
    except BrokerError as error:
        code = error.code

    def may(topic_id: bytes, index: int) -> ErrorCode:
        told = code if code or group is None else group.may_commit(member_id, epoch, (topic_id, index))
        # Producers do not know epochs.
        return ErrorCode.ILLEGAL_GENERATION if told == ErrorCode.STALE_MEMBER_EPOCH else told

    puts, answer = weighed(request, coordinator.world, may, by_id=False)
    yield from stores(puts, request.producer_id, request.producer_epoch)
    yield Reply(ticket, answer)


def weighed(
    request: CommitRequest, world: World, may: Callable[[bytes, int], ErrorCode], *, by_id: bool
) -> tuple[list[Put], CommitResponse]:
    """The records that would commit this, and the answer if they are stored.

    `may` has a word about each partition that exists; one that does not is said not to, whatever the group says: Kafka
    looks there first.
    """
    image, now_ms, metadata_max = world.image, world.clock(), world.config["offset.metadata.max.bytes"]
    puts: list[Put] = []

    def judge(name: str, topic_id: bytes, partition: Any) -> ErrorCode:
        if by_id and not name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if image.partition(name, partition.partition_index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code := may(topic_id, partition.partition_index):
            return code
        metadata = partition.committed_metadata or ""
        if utf16_units(metadata) > metadata_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        key = (name, partition.partition_index)
        puts.append(committed(request, partition, metadata, now_ms, topic_id).put(request.group_id, key))
        return ErrorCode.NONE

    return puts, commit_answer(request, image, judge)


def committed(request: CommitRequest, partition: Any, metadata: str, now_ms: int, topic_id: bytes) -> Committed:
    commit_ms, expire_ms = now_ms, NEVER_MS
    if isinstance(request, OffsetCommitRequest):
        if partition.commit_timestamp != -1:  # v1: the client says when
            commit_ms = partition.commit_timestamp
        if request.retention_time_ms != -1:
            expire_ms = min(now_ms + request.retention_time_ms, LATEST_MS)
    return Committed(
        partition.committed_offset, partition.committed_leader_epoch, metadata, commit_ms, expire_ms, topic_id
    )


def commit_answer(
    request: CommitRequest, image: Image, judge: Callable[[str, bytes, Any], ErrorCode]
) -> CommitResponse:
    response: Any = OffsetCommitResponse if isinstance(request, OffsetCommitRequest) else TxnOffsetCommitResponse
    topics: list[Any] = []
    for topic in request.topics:
        if not topic.partitions:
            continue  # nothing was said about it, and nothing is answered
        name, topic_id = identity(topic, image)
        answers = [
            response.Topic.Partition(partition_index=each.partition_index, error_code=judge(name, topic_id, each))
            for each in topic.partitions
        ]
        topics.append(response.Topic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    answer: CommitResponse = response(topics=topics)
    return answer


def commit_refusal(request: CommitRequest, code: ErrorCode) -> CommitResponse:
    """Everything is refused."""
    return commit_answer(request, Image(), lambda name, topic_id, partition: code)


def identity(topic: Any, image: Image) -> tuple[str, bytes]:
    """The name and the id of a topic that was given by one of them; "" and zeros where there is none."""
    if topic.topic_id != ZERO_UUID:
        return image.topic_names.get(topic.topic_id, ""), topic.topic_id
    found = image.topics.get(topic.name)
    return topic.name, found.id if found else ZERO_UUID


def utf16_units(text: str) -> int:
    """How Java counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# -- fetching --------------------------------------------------------------------------------------


@effects
def fetch(
    coordinator: GroupCoordinator,
    now: float,
    asked: OffsetFetchRequest.Group,
    stable: bool,
    caller: Caller,
    ticket: Any,
) -> Iterator[Effect]:
    """Of one group.  A group that is not there has committed nothing."""
    try:
        if group := coordinator.groups.get(asked.group_id):
            group.check_fetch(asked.member_id, asked.member_epoch)
    except BrokerError as error:
        yield Reply(ticket, fetch_refusal(asked.group_id, error.code))
        return
    by_id = caller.version >= BY_ID_SINCE
    yield Reply(ticket, fetched(asked, coordinator.offsets, coordinator.world.image, stable=stable, by_id=by_id))


def fetched(
    asked: OffsetFetchRequest.Group, offsets: Offsets, image: Image, *, stable: bool, by_id: bool
) -> OffsetFetchResponse.Group:
    """What was committed.  `stable`: where a transaction may still change it, say so instead."""
    known = offsets.of(asked.group_id)

    def look(name: str, topic_id: bytes, index: int) -> FetchPartition:
        if stable and offsets.is_pending(asked.group_id, (name, index)):
            return no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        found = known.get((name, index))
        if found is None or not found.is_of(topic_id):
            return no_offset(index)
        return FetchPartition(
            partition_index=index,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
        )

    topics = []
    if asked.topics is None:
        for name, partitions in groupby(sorted(known), key=lambda partition: partition[0]):
            topic = image.topics.get(name)
            if topic is None and by_id:
                continue  # a topic that is gone has no id to be named by
            found = [look(name, ZERO_UUID, index) for _, index in partitions]
            topics.append(FetchTopic(name=name, topic_id=topic.id if topic else ZERO_UUID, partitions=found))
    for asked_topic in asked.topics or ():
        if by_id and asked_topic.topic_id not in image.topic_names:
            found = [no_offset(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in asked_topic.partition_indexes]
        else:
            name, _ = identity(asked_topic, image)
            found = [look(name, asked_topic.topic_id, index) for index in asked_topic.partition_indexes]
        topics.append(FetchTopic(name=asked_topic.name, topic_id=asked_topic.topic_id, partitions=found))
    return FetchGroup(group_id=asked.group_id, topics=topics)


def no_offset(index: int, code: int = ErrorCode.NONE) -> FetchPartition:
    return FetchPartition(
        partition_index=index, committed_offset=UNKNOWN, committed_leader_epoch=-1, metadata="", error_code=code
    )


def fetch_refusal(group_id: str, code: ErrorCode) -> OffsetFetchResponse.Group:
    return FetchGroup(group_id=group_id, topics=[], error_code=code)


# -- deleting --------------------------------------------------------------------------------------


@effects
def delete(coordinator: GroupCoordinator, now: float, request: OffsetDeleteRequest, ticket: Any) -> Iterator[Effect]:
    try:
        group = coordinator.find(request.group_id)
        group.check_offset_delete()
    except BrokerError as error:
        yield Reply(ticket, OffsetDeleteResponse(error_code=error.code, topics=[]))
        return
    puts, answer = deleted(request, coordinator.offsets, coordinator.world.image, group.is_subscribed_to)
    yield from stores(puts)
    yield Reply(ticket, answer)


def deleted(
    request: OffsetDeleteRequest, offsets: Offsets, image: Image, is_subscribed: Callable[[str], bool]
) -> tuple[list[Put], OffsetDeleteResponse]:
    puts: list[Put] = []
    known = offsets.partitions(request.group_id)

    def judge(name: str, index: int) -> ErrorCode:
        if image.partition(name, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_subscribed(name):
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if (name, index) in known:
            puts.append(tombstone(request.group_id, (name, index)))
        return ErrorCode.NONE

    Topic = OffsetDeleteResponse.Topic
    answers = [
        Topic(
            name=topic.name,
            partitions=[
                Topic.Partition(partition_index=index, error_code=judge(topic.name, index))
                for index in indexes(topic.partitions)
            ],
        )
        for topic in request.topics
        if topic.partitions
    ]
    return puts, OffsetDeleteResponse(topics=answers)


def indexes(partitions: Iterable[OffsetDeleteRequest.Topic.Partition]) -> list[int]:
    return [each.partition_index for each in partitions]
