"""What tests of whole systems need of a topic, through librdkafka: make it, fill it, read it, forget its beginning."""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import confluent_kafka
import confluent_kafka.admin

PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Record:
    """What was sent, or found.  `offset` and `timestamp_ms` are -1 where nobody has said."""

    value: str
    key: str | None = None
    partition: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int = -1
    offset: int = -1


def admin(bootstrap: str) -> confluent_kafka.admin.AdminClient:
    return confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})


def new_name(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


def make_topic(bootstrap: str, name: str, partitions: int = 2, config: Mapping[str, str] | None = None) -> str:
    topic = confluent_kafka.admin.NewTopic(name, partitions, config=dict(config or {}))
    client = admin(bootstrap)  # held: its futures end with it
    for future in client.create_topics([topic]).values():
        future.result(PATIENCE_SECONDS)
    return name


def new_topic(bootstrap: str, word: str, partitions: int = 2, config: Mapping[str, str] | None = None) -> str:
    return make_topic(bootstrap, new_name(word), partitions, config)


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    client = admin(bootstrap)
    for future in client.create_partitions([confluent_kafka.admin.NewPartitions(topic, total)]).values():
        future.result(PATIENCE_SECONDS)


def forget_before(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    asked = confluent_kafka.TopicPartition(topic, partition, offset)
    client = admin(bootstrap)
    for future in client.delete_records([asked]).values():
        assert future.result(PATIENCE_SECONDS).low_watermark == offset


def delete_topic(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    for future in client.delete_topics([topic], operation_timeout=PATIENCE_SECONDS).values():
        future.result(PATIENCE_SECONDS)


def producer(bootstrap: str, **settings: str) -> confluent_kafka.Producer:
    """Idempotent: what it writes is there once, in order."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **given})


def send(through: confluent_kafka.Producer, topic: str, records: Iterable[Record]) -> None:
    for each in records:
        through.produce(
            topic,
            each.value,
            each.key,
            partition=each.partition,
            headers=list(each.headers) or None,
            timestamp=max(each.timestamp_ms, 0),  # 0: now
        )
        through.poll(0)
    assert through.flush(PATIENCE_SECONDS) == 0


def write(bootstrap: str, topic: str, records: Iterable[Record]) -> None:
    send(producer(bootstrap), topic, records)


def numbered(partition: int, start: int, stop: int) -> list[Record]:
    """Records that tell where they belong: a gap or a repetition can be seen."""
    return [Record(f"p{partition}-{number:05}", partition=partition) for number in range(start, stop)]


def read(bootstrap: str, topic: str, partitions: int = 2, isolation: str = "read_committed") -> list[Record]:
    """All that is there now, partition by partition, in the order of offsets."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    beginning = confluent_kafka.OFFSET_BEGINNING
    consumer.assign([confluent_kafka.TopicPartition(topic, index, beginning) for index in range(partitions)])
    found: list[Record] = []
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"{topic}: only partitions {ended} have an end"
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                found.append(record(message))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise confluent_kafka.KafkaException(message.error())
    finally:
        consumer.close()
    return sorted(found, key=lambda each: (each.partition, each.offset))


def record(message: confluent_kafka.Message) -> Record:
    key = message.key()
    return Record(
        value=message.value().decode(),
        key=None if key is None else key.decode(),
        partition=message.partition(),
        headers=tuple(message.headers() or ()),
        timestamp_ms=message.timestamp()[1],
        offset=message.offset(),
    )


def placed(records: Iterable[Record]) -> list[Record]:
    """The same records with the offsets that dense partitions give them."""
    following: dict[int, int] = {}
    answer = []
    for each in records:
        offset = following.get(each.partition, 0)
        following[each.partition] = offset + 1
        answer.append(replace(each, offset=offset))
    return answer


def values(records: Iterable[Record]) -> list[str]:
    return [each.value for each in records]


def wait_until(what: str, done, seconds: float = PATIENCE_SECONDS) -> None:
    """`done()` is asked until it is true; `what` is said if that takes too long."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} seconds: {what}"
        time.sleep(0.1)
