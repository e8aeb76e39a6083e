"""Consume, transform, produce, exactly once, with librdkafka: one of several members of a group.  As librdkafka asks,
what may be tried again is, and what cannot be committed is aborted and read again.

Arguments: bootstrap, group, which member (its transactional id is made of it), input, output, then settings of both
clients as NAME=VALUE.  Says "started", then "committed" or "aborted" for every transaction, and "again" for whatever is
tried again.  Ends in order with SIGTERM, and with 1 if the producer cannot go on.
"""

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka

MOST = 50
SECONDS = 30

ended = threading.Event()


def main(bootstrap: str, group: str, member: str, source: str, sink: str, *settings: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    common = {"bootstrap.servers": bootstrap, **dict(each.split("=", 1) for each in settings)}
    timeout_ms = int(common.pop("transaction.timeout.ms", "60000"))
    session_ms = common.pop("session.timeout.ms", "45000")
    producer = confluent_kafka.Producer(
        {
            **common,
            "transactional.id": f"{group}-{member}",
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
    )
    consumer = confluent_kafka.Consumer(
        {
            **common,
            "group.id": group,
            "client.id": member,
            "session.timeout.ms": session_ms,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    say("started")
    insist(producer.init_transactions, SECONDS)
    consumer.subscribe([source])
    while not ended.is_set():
        messages = [each for each in consumer.consume(MOST, 0.1) if not each.error()]
        if messages:
            try:
                copy(producer, consumer, messages, sink)
                say("committed")
            except confluent_kafka.KafkaException as problem:
                if problem.args[0].fatal():
                    raise
                say("aborted", problem)
                insist(producer.abort_transaction, SECONDS)
                rewind(consumer)
    consumer.close()


def copy(producer: Any, consumer: Any, messages: list[Any], sink: str) -> None:
    producer.begin_transaction()
    after = {}
    for message in messages:
        producer.produce(sink, message.value().upper(), partition=message.partition())
        after[message.topic(), message.partition()] = message.offset() + 1
    places = [confluent_kafka.TopicPartition(*place, offset) for place, offset in after.items()]
    insist(producer.send_offsets_to_transaction, places, consumer.consumer_group_metadata(), SECONDS)
    insist(producer.commit_transaction, SECONDS)


def insist(call: Callable[..., Any], *given: Any) -> Any:
    while True:
        try:
            return call(*given)
        except confluent_kafka.KafkaException as problem:
            if not problem.args[0].retriable():
                raise
            say("again", problem)


def rewind(consumer: Any) -> None:
    """To what is committed, in what is still ours."""
    while not ended.is_set():
        try:
            for place in consumer.committed(consumer.assignment(), SECONDS):
                if place.offset < 0:
                    place.offset = confluent_kafka.OFFSET_BEGINNING
                consumer.seek(place)
            return
        except confluent_kafka.KafkaException as problem:
            say("again", problem)


def say(word: str, problem: object = "") -> None:
    print(word, flush=True)
    if problem:
        print(word, problem, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
