"""Topics and records for examples, through our own small client."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from trilogue.client.client import Client
from trilogue.client.dialogue import check
from trilogue.client.writer import Draft, Writer
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

CHUNK_RECORDS = 5000


FOREVER = {"retention.ms": "-1"}
"""Examples happened long ago: with a broker's usual week they would soon be gone."""


class NewTopic(NamedTuple):
    partitions: int
    settings: Mapping[str, str] = FOREVER


class Outgoing(NamedTuple):
    topic: str
    key: str | None
    value: str | None
    timestamp_ms: int


async def send(client: Client, topics: Mapping[str, NewTopic], records: Iterable[Outgoing]) -> int:
    """How many.  Topics that are there already stay as they are."""
    for name, wanted in topics.items():
        await create(client, name, wanted)
    writers = {name: Writer(client, name, wanted.partitions) for name, wanted in topics.items()}
    count = 0
    for chunk in chunks(records):
        by_topic: dict[str, list[Draft]] = {}
        for topic, key, value, timestamp in chunk:
            draft = Draft(encoded(key), encoded(value), timestamp=timestamp)
            by_topic.setdefault(topic, []).append(draft)
        for topic, drafts in by_topic.items():
            await writers[topic].write(drafts)
        count += len(chunk)
    return count


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def chunks(records: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    rest = iter(records)
    while chunk := list(islice(rest, CHUNK_RECORDS)):
        yield chunk


async def create(client: Client, name: str, wanted: NewTopic) -> None:
    Topic = CreateTopicsRequest.Topic
    configs = [Topic.Config(name=each, value=value) for each, value in wanted.settings.items()]
    topic = Topic(name=name, num_partitions=wanted.partitions, replication_factor=-1, assignments=[], configs=configs)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)

    async def attempt() -> None:
        (answer,) = (await client.call_controller(request, CreateTopicsResponse)).topics
        try:
            check(answer.error_code, answer.error_message)
        except BrokerError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        await client.leader(name, 0)

    await client.persist(attempt)
