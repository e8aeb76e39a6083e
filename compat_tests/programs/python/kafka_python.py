"""kafka-python, from 1.4.7 to 3: what differs between them is looked up, not told.  `serving.py` has the rules."""

import ast
import time
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from serving import Answer, arguments, hexed, records, serve, stamps, told

MAJOR = int(kafka.__version__.split(".")[0])


class Client:
    def __init__(self, bootstrap: str, settings: dict[str, str]) -> None:
        self.common: dict[str, Any] = {"bootstrap_servers": bootstrap}
        self.common |= {name: ast.literal_eval(value) for name, value in settings.items()}
        self.member: Any = None
        self._admin: Any = None

    @property
    def admin(self) -> Any:
        self._admin = self._admin or KafkaAdminClient(**self.common)
        return self._admin

    def version(self) -> Answer:
        return {"version": kafka.__version__}

    # -- writing and reading -----------------------------------------------------------------------

    def produce(
        self, topic: str, records: str, partition: str = "0", codec: str = "none", acks: str = "all",
        idempotent: str = "false", timestamp: str = "",
    ) -> Answer:  # fmt: skip
        options: dict[str, Any] = {"compression_type": None if codec == "none" else codec}
        options |= {"acks": acks if acks == "all" else int(acks), "max_request_size": 20 << 20, "linger_ms": 5}
        if idempotent == "true":
            options["enable_idempotence"] = True
        producer = KafkaProducer(**self.common, **options)
        sent = send(producer, topic, int(partition), records, timestamp)
        producer.flush(30)
        offsets = [each.get(10).offset for each in sent]
        producer.close()
        return {"offsets": offsets}

    def consume(
        self, topic: str, count: str, partition: str = "0", start: str = "0", isolation: str = "read_uncommitted"
    ) -> Answer:
        options = {} if isolation == "read_uncommitted" else {"isolation_level": isolation}
        consumer = KafkaConsumer(
            **self.common, **options, consumer_timeout_ms=15_000, max_partition_fetch_bytes=20 << 20
        )
        place = TopicPartition(topic, int(partition))
        consumer.assign([place])
        consumer.seek(place, int(start))
        found = []
        for each in consumer if int(count) else ():
            found.append(told(each.offset, each.timestamp, each.key, each.value, each.headers))
            if len(found) == int(count):
                break
        consumer.close()
        return {"records": found}

    def position(self, topic: str, at: str, partition: str = "0") -> Answer:
        consumer = KafkaConsumer(**self.common)
        place = TopicPartition(topic, int(partition))
        consumer.assign([place])
        if at == "earliest":
            consumer.seek_to_beginning(place)
        elif at == "latest":
            consumer.seek_to_end(place)
        else:
            found = consumer.offsets_for_times({place: int(at)})[place]
            consumer.seek(place, found.offset)
        position = consumer.position(place)
        consumer.close()
        return {"position": position}

    def transact(self, topic: str, records: str, name: str, end: str) -> None:
        producer = KafkaProducer(**self.common, transactional_id=name)
        producer.init_transactions()
        producer.begin_transaction()
        for each in send(producer, topic, 0, records, ""):
            each.get(20)
        producer.commit_transaction() if end == "commit" else producer.abort_transaction()
        producer.close()

    # -- a member of a group -----------------------------------------------------------------------

    def join(self, topic: str, group: str, protocol: str = "classic") -> None:
        assert protocol == "classic"
        options = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        self.member = KafkaConsumer(
            **self.common, **options, group_id=group, session_timeout_ms=6000, heartbeat_interval_ms=500
        )
        self.member.subscribe([topic])

    def poll(self, seconds: str) -> Answer:
        values, deadline = [], time.monotonic() + float(seconds)
        while not values and time.monotonic() < deadline:
            # Shorter, and it may give up between the halves of a rebalance, and then neither goes on nor heartbeats.
            found = self.member.poll(timeout_ms=500)
            values += [hexed(each.value) for some in found.values() for each in some]
        return {"assignment": sorted(each.partition for each in self.member.assignment()), "values": values}

    def commit(self) -> None:
        self.member.commit()

    def leave(self) -> None:
        self.member.close(autocommit=False)

    # -- administration ----------------------------------------------------------------------------

    def create(self, topic: str, partitions: str = "1", **configs: str) -> None:
        self.admin.create_topics([NewTopic(topic, int(partitions), 1, topic_configs=configs)])

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    def grow(self, topic: str, partitions: str) -> None:
        wish = int(partitions) if MAJOR >= 3 else NewPartitions(int(partitions))
        self.admin.create_partitions({topic: wish})

    def topics(self) -> Answer:
        consumer = KafkaConsumer(**self.common)
        names = sorted(consumer.topics())
        consumer.close()
        return {"topics": names}

    def describe(self, topic: str) -> Answer:
        consumer = KafkaConsumer(**self.common)
        partitions = sorted(consumer.partitions_for_topic(topic) or ())
        consumer.close()
        return {"partitions": partitions}

    def configs(self, topic: str, name: str) -> Answer:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {name: None} if MAJOR < 3 else [name])]
        if MAJOR >= 3:
            told = self.admin.describe_configs(asked, config_filter="all")
            return {"value": told["topic"][topic][name]["value"]}
        answers = self.admin.describe_configs(asked)
        answers = answers if isinstance(answers, list) else [answers]
        (entries,) = [entries for answer in answers for _, _, _, _, entries in answer.resources]
        return {"value": entries[0][1]}

    def alter(self, topic: str, name: str, value: str) -> None:
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])

    def groups(self) -> Answer:
        if MAJOR >= 3:
            return {"groups": sorted(each["group_id"] for each in self.admin.list_groups())}
        return {"groups": sorted(name for name, _ in self.admin.list_consumer_groups())}

    def describe_group(self, group: str) -> Answer:
        if MAJOR >= 3:
            described = self.admin.describe_groups([group])[group]
            return {"state": described["group_state"], "members": len(described["members"])}
        ((_, _, state, _, _, members, *_),) = self.admin.describe_consumer_groups([group])
        return {"state": state, "members": len(members)}

    def group_offsets(self, group: str, topic: str) -> Answer:
        if MAJOR >= 3:
            offsets = self.admin.list_group_offsets({group: None})[group]
        else:
            offsets = self.admin.list_consumer_group_offsets(group)
        return {"offsets": {each.partition: place.offset for each, place in offsets.items() if each.topic == topic}}

    def delete_group(self, group: str) -> None:
        delete = self.admin.delete_groups if MAJOR >= 3 else self.admin.delete_consumer_groups
        delete([group])

    def delete_records(self, topic: str, offset: str, partition: str = "0") -> Answer:
        place = TopicPartition(topic, int(partition))
        done = self.admin.delete_records({place: int(offset)})
        return {"low_watermark": done[place]["low_watermark"]}


def send(producer: Any, topic: str, partition: int, text: str, timestamp: str) -> list[Any]:
    wishes = records(text)
    return [
        producer.send(topic, each.value, each.key, each.headers, partition, stamp)
        for each, stamp in zip(wishes, stamps(timestamp, len(wishes)), strict=True)
    ]


if __name__ == "__main__":
    serve(Client(*arguments()))
