"""confluent-kafka, that is librdkafka.  `serving.py` has the rules."""

import time
from typing import Any

import confluent_kafka
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from serving import Answer, arguments, hexed, records, serve, stamps, told

SECONDS = 20


class Client:
    def __init__(self, bootstrap: str, settings: dict[str, str]) -> None:
        self.common: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 3, **settings}
        self.member: Any = None
        self._admin: Any = None

    @property
    def admin(self) -> AdminClient:
        self._admin = self._admin or AdminClient(self.common)
        return self._admin

    def version(self) -> Answer:
        return {"version": confluent_kafka.__version__}

    # -- writing and reading -----------------------------------------------------------------------

    def produce(
        self, topic: str, records: str, partition: str = "0", codec: str = "none", acks: str = "all",
        idempotent: str = "false", timestamp: str = "",
    ) -> Answer:  # fmt: skip
        options = {"compression.type": codec, "acks": acks, "message.max.bytes": 20 << 20, "linger.ms": 5}
        producer = confluent_kafka.Producer(self.common | options | {"enable.idempotence": idempotent})
        return {"offsets": send(producer, topic, int(partition), records, timestamp)}

    def consume(
        self, topic: str, count: str, partition: str = "0", start: str = "0", isolation: str = "read_uncommitted"
    ) -> Answer:
        consumer = self._consumer(isolation)
        consumer.assign([TopicPartition(topic, int(partition), int(start))])
        found: list[Answer] = []
        while len(found) < int(count):
            message = consumer.poll(15)
            if message is None:
                break
            if message.error():
                raise confluent_kafka.KafkaException(message.error())
            _, stamp = message.timestamp()
            found.append(told(message.offset(), stamp, message.key(), message.value(), message.headers()))
        consumer.close()
        return {"records": found}

    def position(self, topic: str, at: str, partition: str = "0") -> Answer:
        consumer, place = self._consumer(), TopicPartition(topic, int(partition))
        if at in ("earliest", "latest"):
            position = consumer.get_watermark_offsets(place, SECONDS)[at == "latest"]
        else:
            place.offset = int(at)
            position = consumer.offsets_for_times([place], SECONDS)[0].offset
        consumer.close()
        return {"position": position}

    def _consumer(self, isolation: str = "read_uncommitted") -> confluent_kafka.Consumer:
        options = {"group.id": "none", "enable.auto.commit": False, "isolation.level": isolation}
        return confluent_kafka.Consumer(self.common | options | {"fetch.message.max.bytes": 20 << 20})

    def transact(self, topic: str, records: str, name: str, end: str) -> None:
        producer = confluent_kafka.Producer(self.common | {"transactional.id": name})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        send(producer, topic, 0, records, "")
        producer.commit_transaction(SECONDS) if end == "commit" else producer.abort_transaction(SECONDS)

    # -- a member of a group -----------------------------------------------------------------------

    def join(self, topic: str, group: str, protocol: str = "classic") -> None:
        options: dict[str, Any] = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        options["group.protocol"] = protocol
        if protocol == "classic":
            options |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        self.member = confluent_kafka.Consumer(self.common | options)
        self.member.subscribe([topic])

    def poll(self, seconds: str) -> Answer:
        values, deadline = [], time.monotonic() + float(seconds)
        while not values and time.monotonic() < deadline:
            found = self.member.consume(500, timeout=0.1)
            values += [hexed(each.value()) for each in found if each.error() is None]
        return {"assignment": sorted(each.partition for each in self.member.assignment()), "values": values}

    def commit(self) -> None:
        self.member.commit(asynchronous=False)

    def leave(self) -> None:
        self.member.close()

    # -- administration ----------------------------------------------------------------------------

    def create(self, topic: str, partitions: str = "1", **configs: str) -> None:
        self.admin.create_topics([NewTopic(topic, int(partitions), 1, config=configs)])[topic].result(SECONDS)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(SECONDS)

    def grow(self, topic: str, partitions: str) -> None:
        self.admin.create_partitions([NewPartitions(topic, int(partitions))])[topic].result(SECONDS)

    def topics(self) -> Answer:
        return {"topics": sorted(self.admin.list_topics(timeout=SECONDS).topics)}

    def describe(self, topic: str) -> Answer:
        return {"partitions": sorted(self.admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions)}

    def configs(self, topic: str, name: str) -> Answer:
        asked = ConfigResource(ResourceType.TOPIC, topic)
        return {"value": self.admin.describe_configs([asked])[asked].result(SECONDS)[name].value}

    def alter(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([asked])[asked].result(SECONDS)

    def groups(self) -> Answer:
        return {"groups": sorted(each.group_id for each in self.admin.list_consumer_groups().result(SECONDS).valid)}

    def describe_group(self, group: str) -> Answer:
        described = self.admin.describe_consumer_groups([group])[group].result(SECONDS)
        return {"state": described.state.name, "members": len(described.members)}

    def group_offsets(self, group: str, topic: str) -> Answer:
        asked = ConsumerGroupTopicPartitions(group)
        found = self.admin.list_consumer_group_offsets([asked])[group].result(SECONDS)
        return {"offsets": {each.partition: each.offset for each in found.topic_partitions if each.topic == topic}}

    def delete_group(self, group: str) -> None:
        self.admin.delete_consumer_groups([group])[group].result(SECONDS)

    def delete_records(self, topic: str, offset: str, partition: str = "0") -> Answer:
        asked = TopicPartition(topic, int(partition), int(offset))
        return {"low_watermark": self.admin.delete_records([asked])[asked].result(SECONDS).low_watermark}


def send(producer: confluent_kafka.Producer, topic: str, partition: int, text: str, timestamp: str) -> list[int]:
    offsets: list[int] = []
    problems: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        problems.append(error) if error else offsets.append(message.offset())

    wishes = records(text)
    for each, stamp in zip(wishes, stamps(timestamp, len(wishes)), strict=True):
        options = {} if stamp is None else {"timestamp": stamp}
        producer.produce(topic, each.value, each.key, partition, delivered, headers=each.headers or None, **options)
    if producer.flush(30):
        raise TimeoutError("not delivered")
    if problems:
        raise confluent_kafka.KafkaException(problems[0])
    return offsets


if __name__ == "__main__":
    serve(Client(*arguments()))
