"""aiokafka: its heart beats only while the loop runs, so jobs are read beside it.  `serving.py` has the rules."""

import ast
import asyncio
import sys
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import for_code
from serving import Answer, arguments, hexed, job, records, refusal, say, stamps, told


class Client:
    def __init__(self, bootstrap: str, settings: dict[str, str]) -> None:
        self.common: dict[str, Any] = {"bootstrap_servers": bootstrap}
        self.common |= {name: ast.literal_eval(value) for name, value in settings.items()}
        self.member: Any = None
        self._admin: Any = None

    async def admin(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(**self.common)
            await self._admin.start()
        return self._admin

    async def version(self) -> Answer:
        return {"version": aiokafka.__version__}

    # -- writing and reading -----------------------------------------------------------------------

    async def produce(
        self, topic: str, records: str, partition: str = "0", codec: str = "none", acks: str = "all",
        idempotent: str = "false", timestamp: str = "",
    ) -> Answer:  # fmt: skip
        options: dict[str, Any] = {"compression_type": None if codec == "none" else codec}
        options |= {"acks": acks if acks == "all" else int(acks), "max_request_size": 20 << 20}
        async with AIOKafkaProducer(**self.common, **options, enable_idempotence=idempotent == "true") as producer:
            found = await send(producer, topic, int(partition), records, timestamp)
        return {"offsets": [-1 if each is None else each.offset for each in found]}

    async def consume(
        self, topic: str, count: str, partition: str = "0", start: str = "0", isolation: str = "read_uncommitted"
    ) -> Answer:
        place, found = TopicPartition(topic, int(partition)), []
        options = {"isolation_level": isolation, "max_partition_fetch_bytes": 20 << 20}
        async with AIOKafkaConsumer(**self.common, **options) as consumer:
            consumer.assign([place])
            consumer.seek(place, int(start))
            for _ in range(int(count)):
                try:
                    each = await asyncio.wait_for(consumer.getone(), 15)
                except TimeoutError:
                    break
                found.append(told(each.offset, each.timestamp, each.key, each.value, each.headers))
        return {"records": found}

    async def position(self, topic: str, at: str, partition: str = "0") -> Answer:
        place = TopicPartition(topic, int(partition))
        async with AIOKafkaConsumer(**self.common) as consumer:
            consumer.assign([place])
            if at == "earliest":
                await consumer.seek_to_beginning(place)
            elif at == "latest":
                await consumer.seek_to_end(place)
            else:
                consumer.seek(place, (await consumer.offsets_for_times({place: int(at)}))[place].offset)
            return {"position": await consumer.position(place)}

    async def transact(self, topic: str, records: str, name: str, end: str) -> None:
        async with AIOKafkaProducer(**self.common, transactional_id=name) as producer:
            await producer.begin_transaction()
            await send(producer, topic, 0, records, "")
            await (producer.commit_transaction() if end == "commit" else producer.abort_transaction())

    # -- a member of a group -----------------------------------------------------------------------

    async def join(self, topic: str, group: str, protocol: str = "classic") -> None:
        assert protocol == "classic"
        options = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        self.member = AIOKafkaConsumer(
            topic, **self.common, **options, group_id=group, session_timeout_ms=6000, heartbeat_interval_ms=500
        )
        await self.member.start()

    async def poll(self, seconds: str) -> Answer:
        found = await self.member.getmany(timeout_ms=int(float(seconds) * 1000))
        values = [hexed(each.value) for some in found.values() for each in some]
        return {"assignment": sorted(each.partition for each in self.member.assignment()), "values": values}

    async def commit(self) -> None:
        await self.member.commit()

    async def leave(self) -> None:
        await self.member.stop()

    # -- administration ----------------------------------------------------------------------------

    async def create(self, topic: str, partitions: str = "1", **configs: str) -> None:
        admin = await self.admin()
        answer = await admin.create_topics([NewTopic(topic, int(partitions), 1, topic_configs=configs)])
        demand(each[1] for each in answer.topic_errors)

    async def delete(self, topic: str) -> None:
        answer = await (await self.admin()).delete_topics([topic])
        demand(code for _, code in answer.topic_error_codes)

    async def grow(self, topic: str, partitions: str) -> None:
        answer = await (await self.admin()).create_partitions({topic: NewPartitions(int(partitions))})
        demand(each[1] for each in answer.topic_errors)

    async def topics(self) -> Answer:
        return {"topics": sorted(await (await self.admin()).list_topics())}

    async def describe(self, topic: str) -> Answer:
        (described,) = await (await self.admin()).describe_topics([topic])
        return {"partitions": sorted(each["partition"] for each in described["partitions"])}

    async def configs(self, topic: str, name: str) -> Answer:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic, {name: None})
        (answer,) = await (await self.admin()).describe_configs([asked])
        ((code, _, _, _, entries),) = answer.resources
        demand([code])
        return {"value": entries[0][1]}

    async def alter(self, topic: str, name: str, value: str) -> None:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        for answer in await (await self.admin()).alter_configs([asked]):
            demand(each[0] for each in answer.resources)

    async def groups(self) -> Answer:
        return {"groups": sorted(name for name, *_ in await (await self.admin()).list_consumer_groups())}

    async def describe_group(self, group: str) -> Answer:
        (answer,) = await (await self.admin()).describe_consumer_groups([group])
        ((code, _, state, _, _, members, *_),) = answer.groups
        demand([code])
        return {"state": state, "members": len(members)}

    async def group_offsets(self, group: str, topic: str) -> Answer:
        offsets = await (await self.admin()).list_consumer_group_offsets(group)
        return {"offsets": {each.partition: place.offset for each, place in offsets.items() if each.topic == topic}}

    async def delete_records(self, topic: str, offset: str, partition: str = "0") -> Answer:
        place = TopicPartition(topic, int(partition))
        done = await (await self.admin()).delete_records({place: RecordsToDelete(int(offset))})
        return {"low_watermark": done[place]}


def demand(codes: Any) -> None:
    for code in codes:
        if code:
            raise for_code(code)


async def send(producer: AIOKafkaProducer, topic: str, partition: int, text: str, timestamp: str) -> list[Any]:
    wishes = records(text)
    sent = [
        await producer.send(topic, each.value, each.key, partition, stamp, each.headers)
        for each, stamp in zip(wishes, stamps(timestamp, len(wishes)), strict=True)
    ]
    return [await each for each in sent]


async def main() -> None:
    client = Client(*arguments())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        verb, given = job(line)
        try:
            say(await getattr(client, verb)(**given) or {})
        except Exception as problem:  # whatever a client can raise is an answer here
            say(refusal(problem))


if __name__ == "__main__":
    asyncio.run(main())
