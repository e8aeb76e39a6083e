"""Produce: append record batches to partitions.

acks 1 answers when the leader has it, -1 when all replicas in sync have, 0 not at all: an error then closes the
connection, which is how the client learns of it.  v0-2 carry message sets of the old formats, which become batches
here (Kafka 4 does not any more).  v3+ must carry one batch.  v10+: where the leader is, if not here (KIP-951).
v13: topics by id.  Nothing of a refused partition is written; the others proceed.
What belongs to a transaction is written if its coordinator knows of it; from v12 on, writing adds the partition.
A batch whose records take long to look at is looked at in a thread; all that does not depend on its bytes alone is
decided after that, when it is written.
"""

from contextlib import suppress
from copy import copy
from typing import NamedTuple

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.admission import ATTRIBUTES_AT, Batches, Refusals, Writer, admit, is_transactional
from trilogue.broker.names import INTERNAL
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.endpoints import add_leaders
from trilogue.broker.requests.later import Later, Parked, Unconfirmed, nobody, settled
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.requests.registry import Repeats, handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.storage.config import LogConfig
from trilogue.storage.producers import Origin
from trilogue.storage.validation import (
    RECORDS_LIMIT,
    NotOneBatch,
    RejectedRecords,
    TakesLong,
    inflated_limit,
    validated,
)
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.compression import Codec, TooLarge
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
GENERATION_1, GENERATION_2 = 1, 2
"""Of transactions."""
MAGIC_AT = LOG_OVERHEAD + 4
SILENT = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
"""Refusals of a batch that do not tell where the log begins; the others do."""

OLD_AT_ONCE = 64 << 10
"""So many bytes of messages that are not compressed are converted at once; that takes 2 ms at most."""
OLD_RATIO = 5
"""So much smaller at most are messages as records: 34 bytes become 7.  What is larger even so is not converted."""
OLD_ATTRIBUTES_AT = 17

BATCHES = 3
"""From this version on records come in batches."""


Result = ProduceResponse | None | Later[ProduceResponse | None] | Unconfirmed[ProduceResponse | None]
Waiting = tuple[Answer, Partition, int, int]
"""What is appended, up to which offset and in which leader epoch, but not safe yet."""


class Long(NamedTuple):
    """A batch that takes long to look at.  Nothing of it is written yet."""

    answers: list[Answer]
    position: int
    """Where its answer belongs."""
    topic: ProduceRequest.Topic
    data: ProduceRequest.Topic.Partition
    """Its own copy: the buffer that it came in is used for others meanwhile."""


def from_template(broker: Broker, template: ProduceTemplate, correlation_id: int, peer: Peer) -> Result | bytearray:
    """One batch for one partition, in a request that differs from one before in nothing but its records.

    What goes well is done here, in as few steps as there may be.  What is refused has changed nothing: `write` refuses
    it again, and says why.
    """
    request, data = template.request, template.data
    acks, records = request.acks, data.records
    try:
        if is_transactional(records):
            return transactional(broker, request, peer)  # which has no transactional id, and is refused
        if not records or not -1 <= acks <= 1:
            return write(broker, own(request), peer)
        partition = find(broker, template.topic, data.index, peer)
        now_ms = broker.clock()
        try:
            base, last, time, start, _ = partition.append(
                records, now_ms, acks, GENERATION_2 if peer.version >= ADDS else GENERATION_1, broker.turns.room
            )
        except OSError as error:
            broker.replicas.failed(partition, error)
            return refuse_all(request, BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)), peer)
        safe = (acks != -1 or partition.is_committed(last + 1)) and not partition.log.must_flush(now_ms)
        if safe and acks:
            return template.answer(correlation_id, base, time, start)
    except (TakesLong, BrokerError, MalformedMessage):
        return write(broker, own(request), peer)  # not of the buffer, which is used for the next request
    finally:
        data.records = None  # the buffer is not ours
    answer = Answer(index=data.index, base_offset=base, log_append_time_ms=time, log_start_offset=start)
    waiting = [] if safe else [(answer, partition, last + 1, partition.leader_epoch)]
    return respond(broker, request, [topic_answer(template.topic, [answer])], waiting, peer)


def own(request: ProduceRequest) -> ProduceRequest:
    """The same, with records of its own."""
    mine = copy(request)
    mine.topic_data = [only(each, *map(own_data, each.partition_data)) for each in request.topic_data]
    return mine


def own_data(data: ProduceRequest.Topic.Partition) -> ProduceRequest.Topic.Partition:
    mine = copy(data)
    mine.records = data.records and memoryview(bytearray(data.records))
    return mine


def only(topic: ProduceRequest.Topic, *data: ProduceRequest.Topic.Partition) -> ProduceRequest.Topic:
    """That topic with these data."""
    mine = copy(topic)
    mine.partition_data = list(data)
    return mine


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
    refused = admitted(broker, request.transactional_id, request.topic_data, peer)
    if isinstance(refused, dict):
        return write(broker, request, peer, refused)
    return write_later(broker, own(request), peer, refused)


def admitted(
    broker: Broker, transactional_id: str, topics: list[ProduceRequest.Topic], peer: Peer
) -> Refusals | Later[Refusals]:
    batches: Batches = {}
    for topic in topics:
        for each in topic.partition_data:
            records = each.records
            if is_transactional(records):
                try:
                    partition = find(broker, topic, each.index, peer)
                except BrokerError:
                    continue  # and it will be refused
                batches[partition.key] = partition, records
    version = peer.version
    writer = Writer(transactional_id, adds=version >= ADDS, knows_abortable=version >= KNOWS_ABORTABLE)
    return admit(broker, peer, writer, batches)


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
    waiting: list[Waiting] = []
    long: list[Long] = []
    topics = []
    for topic in request.topic_data:
        answers: list[Answer] = []
        for each in topic.partition_data:
            try:
                answers.append(append(broker, request, topic, each, peer, now_ms, waiting, refused))
            except TakesLong:
                long.append(Long(answers, len(answers), topic, own_data(each)))
                answers.append(Answer(index=each.index, base_offset=NO_OFFSET))
        topics.append(topic_answer(topic, answers))
    if long:
        return write_long(broker, request, topics, long, waiting, peer)
    return respond(broker, request, topics, waiting, peer)


async def write_long(
    broker: Broker, request: ProduceRequest, topics: list[Topic], long: list[Long], waiting: list[Waiting], peer: Peer
) -> ProduceResponse | None:
    """Look at them in a thread, and write those that are good."""
    good: list[Long] = []
    checked: dict[int, LogConfig] = {}
    for each in long:
        answer, start = each.answers[each.position], NO_OFFSET
        try:
            log = find(broker, each.topic, each.data.index, peer).log
            config, start = log.config, log.start_offset
            each.data.records = await broker.turns.in_thread(
                looked_at, each.data.records, config, broker.clock(), peer.version
            )
        except (BrokerError, MalformedMessage) as error:
            refuse(answer, error, peer, start)
        else:
            good.append(each)
            checked[id(each.data)] = config
    refused = None
    if request.transactional_id is not None and peer.version >= BATCHES:
        # A transaction may have ended meanwhile: what was admitted to it before is not any more.
        left = [only(each.topic, each.data) for each in good]
        refused = await settled(admitted(broker, request.transactional_id, left, peer))
    now_ms = broker.clock()
    for answers, position, topic, data in good:
        answers[position] = append(broker, request, topic, data, peer, now_ms, waiting, refused, checked)
    return await settled(respond(broker, request, topics, waiting, peer))


def looked_at(records: memoryview, config: LogConfig, now_ms: int, version: int) -> memoryview:
    """As it goes into the log."""
    if version < BATCHES:
        from trilogue.wire.legacy import up_convert

        try:
            records = memoryview(up_convert(records, cap=inflated_limit(config), most=RECORDS_LIMIT))
        except TooLarge as error:
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
    return validated(records, config, now_ms, Origin.CLIENT)


def topic_answer(topic: ProduceRequest.Topic, partitions: list[Answer]) -> Topic:
    return Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)


def respond(
    broker: Broker,
    request: ProduceRequest,
    topics: list[Topic],
    waiting: list[Waiting],
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
        deadline = trio.current_time() + request.timeout_ms / 1000
        if any(partition.log.must_flush(broker.clock()) for _, partition, _, _ in waiting):
            return Unconfirmed(wait(broker, response, waiting, deadline))
        return Unconfirmed(Acknowledgement(response, waiting, deadline))
    return response


def append(
    broker: Broker,
    request: ProduceRequest,
    topic: ProduceRequest.Topic,
    data: ProduceRequest.Topic.Partition,
    peer: Peer,
    now_ms: int,
    waiting: list[Waiting],
    refused: Refusals | None,
    checked: dict[int, LogConfig] | None = None,
) -> Answer:
    """One partition; what it has to wait for goes into `waiting`.  Raises TakesLong unless its data is `checked`."""
    answer = Answer(index=data.index, base_offset=NO_OFFSET)
    start = NO_OFFSET
    try:
        if not -1 <= request.acks <= 1:
            raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS)
        partition = find(broker, topic, data.index, peer)
        if refused is not None and partition.key in refused:
            raise refused[partition.key]
        records = data.records
        log = partition.log
        if not records or (peer.version < KNOWS_ZSTD and checked is None):
            records = batch(records, peer.version, log.config)
        start = log.start_offset
        generation = GENERATION_2 if peer.version >= ADDS else GENERATION_1
        if checked is None:
            appended = partition.append(records, now_ms, request.acks, generation, broker.turns.room)
        else:
            appended = partition.append(records, now_ms, request.acks, generation, checked=checked[id(data)])
        answer.base_offset, last, answer.log_append_time_ms, answer.log_start_offset, _ = appended
        if (request.acks == -1 and not partition.is_committed(last + 1)) or log.must_flush(now_ms):
            waiting.append((answer, partition, last + 1, partition.leader_epoch))
    except (BrokerError, MalformedMessage) as error:
        refuse(answer, error, peer, start)
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


def batch(records: memoryview | None, version: int, config: LogConfig) -> memoryview:
    """What came in an old version as one batch of the format that the log keeps, if there is anything."""
    if records is None or not len(records):
        raise BrokerError(ErrorCode.INVALID_RECORD, "Produce requests must have exactly one record batch per partition")
    if version >= BATCHES:
        if version < KNOWS_ZSTD:
            check_codec(records, version)
        return records
    if len(records) > OLD_RATIO * config.max_message_bytes:
        raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, f"{len(records)} bytes of messages")
    if len(records) > OLD_AT_ONCE or (len(records) > OLD_ATTRIBUTES_AT and records[OLD_ATTRIBUTES_AT] & CODEC_MASK):
        raise TakesLong
    from trilogue.wire.legacy import up_convert

    return memoryview(up_convert(records))


def check_codec(records: memoryview, version: int) -> None:
    """Refuse what readers of that time do not know."""
    codec = records[ATTRIBUTES_AT] & CODEC_MASK if len(records) > ATTRIBUTES_AT else Codec.NONE
    if codec >= Codec.ZSTD and records[MAGIC_AT] == MAGIC:
        known = codec == Codec.ZSTD
        code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if known else ErrorCode.UNKNOWN_SERVER_ERROR
        raise BrokerError(code, f"compression {codec} in version {version} of Produce")


def refuse(
    answer: Answer, error: BrokerError | MalformedMessage, peer: Peer, log_start_offset: int = NO_OFFSET
) -> None:
    if isinstance(error, MalformedMessage):
        error = BrokerError(ErrorCode.CORRUPT_MESSAGE, str(error))
    answer.error_code = error.code
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = NO_OFFSET
    if error.code not in SILENT and not isinstance(error, NotOneBatch):
        answer.log_start_offset = log_start_offset
    answer.error_message = error.message
    if isinstance(error, RejectedRecords):
        answer.record_errors = [
            Answer.RecordError(batch_index=index, batch_index_error_message=why) for index, why in error.record_errors
        ]


class Acknowledgement(Parked[ProduceResponse | None]):
    """Until all replicas in sync have what is appended, or it is known that they will not."""

    __slots__ = ("_response", "_waiting")

    def __init__(self, response: ProduceResponse, waiting: list[Waiting], deadline: float) -> None:
        super().__init__(deadline)
        self._response, self._waiting = response, waiting
        for _, partition, end, _ in waiting:
            partition.tell_when_committed(end, self._told)

    def _told(self) -> None:
        self.wake()

    def take(self, now: float) -> ProduceResponse | None:
        self._waiting = [each for each in self._waiting if not self._is_settled(each, now)]
        return None if self._waiting else self._response

    def _is_settled(self, waiting: Waiting, now: float) -> bool:
        answer, partition, end, epoch = waiting
        try:
            if not partition.is_safe(end, epoch):
                if now < self.deadline:
                    return False
                raise partition.too_slow()
        except BrokerError as error:
            answer.error_code = error.code
            answer.base_offset = NO_OFFSET
        return True

    def close(self) -> None:
        self.wake = nobody


async def wait(
    broker: Broker, response: ProduceResponse, waiting: list[Waiting], deadline: float
) -> ProduceResponse | None:
    """The same where something has to be on the disk first."""
    for answer, partition, end, epoch in waiting:
        try:
            await safe(broker, partition, end, epoch, deadline)
        except BrokerError as error:
            answer.error_code = error.code
            answer.base_offset = NO_OFFSET
        except OSError as error:
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answer.error_message = str(error)
    return response


async def wait_in_silence(broker: Broker, waiting: list[Waiting]) -> None:
    for _, partition, _, _ in waiting:
        with suppress(OSError):  # said in the log; nobody else wants to know
            await broker.upkeep.flush(partition)


async def safe(broker: Broker, partition: Partition, end: int, epoch: int, deadline: float) -> None:
    """On the disk as far as the settings ask for it, and with the replicas."""
    if partition.log.must_flush(broker.clock()):
        await broker.upkeep.flush(partition)
    if partition.leader_epoch != epoch or not partition.is_committed(end):
        await partition.committed(end, deadline, epoch)


def check_silent(response: ProduceResponse, peer: Peer) -> None:
    """With acks 0 there is no answer to put an error into: the client hears of it by being hung up on."""
    for topic in response.responses:
        for each in topic.partition_responses:
            if each.error_code != ErrorCode.NONE:
                code = ErrorCode(each.error_code).name  # type: ignore[call-arg]
                raise Hangup(f"{peer} sent records for {topic.name}-{each.index} with acks=0: {code}")
