"""A member of a group that reads a topic and commits what it has read, with librdkafka.

Arguments: bootstrap, group, topic, then settings as NAME=VALUE.  Says "read GENERATION PARTITION OFFSET TIME" for every
record, "committed" when that has succeeded, "failed WHY" if not.  Ends in order with SIGTERM, and with 1 if it cannot
go on.  Who commits by itself, by `enable.auto.commit=true`, is not asked to.
"""

import signal
import sys
import threading
import time

import confluent_kafka

COMMIT_SECONDS = 0.2
GENERATION = slice(len("CGMDv2:"), len("CGMDv2:") + 4)
"""Where it is in what librdkafka says of its group."""

ended = threading.Event()


def main(bootstrap: str, group: str, topic: str, *settings: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    given = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        **dict(each.split("=", 1) for each in settings),
    }
    commits = given["enable.auto.commit"] == "false"
    consumer = confluent_kafka.Consumer(given)
    consumer.subscribe([topic])
    commit_at, news = 0.0, False
    while not ended.is_set():
        message = consumer.poll(0.1)  # not `consume`: that may return what was read before a rebalance, after it
        if message is not None and message.error():
            if message.error().fatal():
                raise confluent_kafka.KafkaException(message.error())
            print("failed", message.error().name(), flush=True)
        elif message is not None:
            generation = int.from_bytes(consumer.consumer_group_metadata()[GENERATION], sys.byteorder, signed=True)
            print("read", generation, message.partition(), message.offset(), f"{time.monotonic():.3f}", flush=True)
            news = True
        if commits and news and time.monotonic() > commit_at:
            news, commit_at = not commit(consumer), time.monotonic() + COMMIT_SECONDS
    consumer.close()


def commit(consumer: confluent_kafka.Consumer) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except confluent_kafka.KafkaException as problem:
        print("failed", problem.args[0].name(), flush=True)
        return False
    print("committed", flush=True)
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
