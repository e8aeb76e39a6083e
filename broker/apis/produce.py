"""Produce: append record batches to partitions.

acks 1 answers when the leader has it, -1 when all replicas in sync have, 0 not at all: an error then closes the
connection, which is how the client learns of it.  v0-2 carry message sets of the old formats, which become batches
here (Kafka 4 does not any more).  v3+ must carry one batch.  v10+: where the leader is, if not here (KIP-951).
v13: topics by id.  Nothing of a refused partition is written; the others proceed.
What belongs to a transaction is written if its coordinator knows of it; from v12 on, writing adds the partition.
"""

from contextlib import suppress

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.admission import ATTRIBUTES_AT, Batches, Refusals, Writer, admit, is_transactional
from trilogue.broker.names import INTERNAL
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.endpoints import add_leaders
from trilogue.broker.requests.later import Later, settled
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.requests.registry import Repeats, handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.storage.validation import NotOneBatch, RejectedRecords
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.compression import Codec
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.produce_templates import ProduceTemplate, ProduceTemplates
from trilogue.wire.records import CODEC_MASK, LOG_OVERHEAD, MAGIC

WRITE = Operation.WRITE  # a member of an enum takes ten times as long to find
Topic = ProduceResponse.Topic
Answer = Topic.Partition
ADMIN_CLIENT = "__admin_client"
"""Who calls itself this may write to internal topics, as with Kafka."""

NO_OFFSET = -1
KNOWS_ZSTD = 7
KNOWS_ABORTABLE = 11
ADDS = 12
"""From this version on, writing in a transaction adds the partition to it."""
MAGIC_AT = LOG_OVERHEAD + 4
SILENT = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
"""Refusals of a batch that do not tell where the log begins; the others do."""

BATCHES = 3
"""From this version on records come in batches."""


Result = ProduceResponse | None | Later[ProduceResponse | None]


def from_template(broker: Broker, template: ProduceTemplate, correlation_id: int, peer: Peer) -> Result | bytearray:
    """One batch for one partition, in a request that differs from one before in nothing but its records."""
    request, data = template.request, template.data
    try:
        if is_transactional(data.records):
            return transactional(broker, request, peer)  # which has no transactional id, and is refused
        waiting: list[tuple[Answer, Partition, int]] = []
        done = append(broker, request, template.topic, data, peer, broker.clock(), waiting, None)
    finally:
        data.records = None  # the buffer is not ours
    if waiting or done.error_code or not request.acks:
        return respond(broker, request, [topic_answer(template.topic, [done])], waiting, peer)
    return template.answer(correlation_id, done.base_offset, done.log_append_time_ms, done.log_start_offset)


@handles(ProduceRequest, repeats=Repeats(ProduceTemplates, from_template))
def produce(broker: Broker, request: ProduceRequest, peer: Peer) -> Result:
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:  # seldom
        topics = request.topic_data = once(topics)
    if peer.version >= BATCHES:
        for topic in topics:
            for each in topic.partition_data:
                if is_transactional(each.records):
                    return transactional(broker, request, peer)
    return write(broker, request, peer)


def once(topics: list[ProduceRequest.Topic]) -> list[ProduceRequest.Topic]:
    """Of a partition named twice only the last, and no topics without partitions: as Kafka understands it."""
    merged: dict[tuple[str, bytes], dict[int, ProduceRequest.Topic.Partition]] = {}
    for topic in topics:
        for each in topic.partition_data:
            merged.setdefault((topic.name, topic.topic_id), {})[each.index] = each
    return [
        ProduceRequest.Topic(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]


def transactional(broker: Broker, request: ProduceRequest, peer: Peer) -> Result:
    if request.transactional_id is None:
        return refuse_all(request, BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), peer)
    batches: Batches = {}
    for topic in request.topic_data:
        for each in topic.partition_data:
            records = each.records
            if is_transactional(records):
                try:
                    partition = find(broker, topic, each.index, peer)
                except BrokerError:
                    continue  # and it will be refused
                batches[partition.key] = partition, records
    version = peer.version
    writer = Writer(request.transactional_id, adds=version >= ADDS, knows_abortable=version >= KNOWS_ABORTABLE)
    refused = admit(broker, peer, writer, batches)
    if isinstance(refused, dict):
        return write(broker, request, peer, refused)
    for topic in request.topic_data:
        for each in topic.partition_data:
            each.records = each.records and memoryview(bytearray(each.records))  # the buffer will be reused meanwhile
    return write_later(broker, request, peer, refused)


def refuse_all(request: ProduceRequest, error: BrokerError, peer: Peer) -> ProduceResponse | None:
    response = ProduceResponse(
        responses=[
            topic_answer(topic, [Answer(index=each.index, base_offset=NO_OFFSET) for each in topic.partition_data])
            for topic in request.topic_data
        ]
    )
    for topic in response.responses:
        for answer in topic.partition_responses:
            refuse(answer, error, peer)
    if request.acks == 0:
        check_silent(response, peer)
    return response


async def write_later(
    broker: Broker, request: ProduceRequest, peer: Peer, refused: Later[Refusals]
) -> ProduceResponse | None:
    return await settled(write(broker, request, peer, await refused))


def write(broker: Broker, request: ProduceRequest, peer: Peer, refused: Refusals | None = None) -> Result:
    now_ms = broker.clock()
    waiting: list[tuple[Answer, Partition, int]] = []
    topics = [
        topic_answer(
            topic,
            [append(broker, request, topic, each, peer, now_ms, waiting, refused) for each in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return respond(broker, request, topics, waiting, peer)


def topic_answer(topic: ProduceRequest.Topic, partitions: list[Answer]) -> Topic:
    return Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)


def respond(
    broker: Broker,
    request: ProduceRequest,
    topics: list[Topic],
    waiting: list[tuple[Answer, Partition, int]],
    peer: Peer,
) -> Result:
    """What is to be said now that everything is appended or refused."""
    response = ProduceResponse(responses=topics)
    if request.acks == 0:
        check_silent(response, peer)
        return wait_in_silence(broker, waiting) if waiting else None
    if peer.version >= 10:
        moved = (
            (topic.name, topic.topic_id, each.index, each)
            for topic in topics
            for each in topic.partition_responses
            if each.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
        add_leaders(broker, peer, response, moved)
    if waiting:
        return wait(broker, response, waiting, request.timeout_ms)
    return response


def append(
    broker: Broker,
    request: ProduceRequest,
    topic: ProduceRequest.Topic,
    data: ProduceRequest.Topic.Partition,
    peer: Peer,
    now_ms: int,
    waiting: list[tuple[Answer, Partition, int]],
    refused: Refusals | None,
) -> Answer:
    """One partition; what it has to wait for goes into `waiting`."""
    answer = Answer(index=data.index, base_offset=NO_OFFSET)
    start = NO_OFFSET
    try:
        if not -1 <= request.acks <= 1:
            raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS)
        partition = find(broker, topic, data.index, peer)
        if refused is not None and partition.key in refused:
            raise refused[partition.key]
        records = data.records
        if peer.version < KNOWS_ZSTD or not records:
            records = batch(records, peer.version)
        log = partition.log
        start = log.start_offset
        generation = 2 if peer.version >= ADDS else 1
        answer.base_offset, last, answer.log_append_time_ms, answer.log_start_offset, _ = partition.append(
            records, now_ms, acks=request.acks, transaction_version=generation
        )
        if (request.acks == -1 and not partition.is_committed(last + 1)) or log.must_flush(now_ms):
            waiting.append((answer, partition, last + 1))
    except BrokerError as error:
        refuse(answer, error, peer)
        if error.code not in SILENT and not isinstance(error, NotOneBatch):
            answer.log_start_offset = start
    except MalformedMessage as error:
        refuse(answer, BrokerError(ErrorCode.CORRUPT_MESSAGE, str(error)), peer)
    except OSError as error:
        broker.replicas.failed(partition, error)
        refuse(answer, BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)), peer)
    return answer


def find(broker: Broker, topic: ProduceRequest.Topic, index: int, peer: Peer) -> Partition:
    name = topic.name
    if peer.version >= 13:
        known = broker.image.topic_by_id(topic.topic_id)
        if known is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = known.name
    if name in INTERNAL and peer.client_id != ADMIN_CLIENT:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    return led_partition(broker, peer, WRITE, name, index)


def batch(records: memoryview | None, version: int) -> memoryview:
    """What came in an old version as one batch of the format that the log keeps, if there is anything."""
    if records is None or not len(records):
        raise BrokerError(ErrorCode.INVALID_RECORD, "Produce requests must have exactly one record batch per partition")
    if version >= BATCHES:
        if version < KNOWS_ZSTD:
            check_codec(records, version)
        return records
    from trilogue.wire.legacy import up_convert

    return memoryview(bytearray(up_convert(records)))


def check_codec(records: memoryview, version: int) -> None:
    """Refuse what readers of that time do not know."""
    codec = records[ATTRIBUTES_AT] & CODEC_MASK if len(records) > ATTRIBUTES_AT else Codec.NONE
    if codec >= Codec.ZSTD and records[MAGIC_AT] == MAGIC:
        known = codec == Codec.ZSTD
        code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if known else ErrorCode.UNKNOWN_SERVER_ERROR
        raise BrokerError(code, f"compression {codec} in version {version} of Produce")


def refuse(answer: Answer, error: BrokerError, peer: Peer) -> None:
    answer.error_code = error.code
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = NO_OFFSET
    answer.error_message = error.message
    if isinstance(error, RejectedRecords):
        answer.record_errors = [
            Answer.RecordError(batch_index=index, batch_index_error_message=why) for index, why in error.record_errors
        ]


async def wait(
    broker: Broker, response: ProduceResponse, waiting: list[tuple[Answer, Partition, int]], timeout_ms: int
) -> ProduceResponse:
    deadline = trio.current_time() + timeout_ms / 1000
    for answer, partition, end in waiting:
        try:
            await safe(broker, partition, end, deadline)
        except BrokerError as error:
            answer.error_code = error.code
            answer.base_offset = NO_OFFSET
        except OSError as error:
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answer.error_message = str(error)
    return response


async def wait_in_silence(broker: Broker, waiting: list[tuple[Answer, Partition, int]]) -> None:
    for _, partition, _ in waiting:
        with suppress(OSError):  # said in the log; nobody else wants to know
            await broker.upkeep.flush(partition)


async def safe(broker: Broker, partition: Partition, end: int, deadline: float) -> None:
    """On the disk as far as the settings ask for it, and with the replicas."""
    if partition.log.must_flush(broker.clock()):
        await broker.upkeep.flush(partition)
    if not partition.is_committed(end):
        await partition.committed(end, deadline)


def check_silent(response: ProduceResponse, peer: Peer) -> None:
    """With acks 0 there is no answer to put an error into: the client hears of it by being hung up on."""
    for topic in response.responses:
        for each in topic.partition_responses:
            if each.error_code != ErrorCode.NONE:
                code = ErrorCode(each.error_code).name  # type: ignore[call-arg]
                raise Hangup(f"{peer} sent records for {topic.name}-{each.index} with acks=0: {code}")
