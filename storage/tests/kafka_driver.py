"""kafka-python at work, in a process of its own: it is not as tidy with sockets and warnings as our tests
are.

kafka_driver.py BOOTSTRAP create {topic: settings} kafka_driver.py BOOTSTRAP fill FOLDER kafka_driver.py
BOOTSTRAP consume TOPIC..."""

import ast
import sys
import time
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

UNCOMPRESSED = ["plain", "stamped"]
RECOMPRESSED = ["gzip", "snappy", "lz4", "zstd"]
"""By the broker, which has all the codecs; kafka-python has gzip alone."""

Seen = dict[str, list[tuple[int, int, bytes | None, bytes | None]]]


def create(bootstrap: str, topics: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    wanted = ast.literal_eval(topics).items()
    admin.create_topics([NewTopic(name, 1, 1, topic_configs=settings) for name, settings in wanted])


def fill(bootstrap: str, folder: str) -> Seen:
    """Returns what no consumer of ours could read back."""
    sent: Seen = {topic: [] for topic in RECOMPRESSED}
    for topic in UNCOMPRESSED + RECOMPRESSED:
        codec = "gzip" if topic == "zstd" else None
        producer = KafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=False, compression_type=codec, linger_ms=5
        )
        for number in range(2500 if topic == "plain" else 300):
            key, value, timestamp = b"k%d" % number, b"v%d" % number * 100, 1_700_000_000_000 + number
            producer.send(topic, key=key, value=value, headers=[("h", b"x")], timestamp_ms=timestamp)
            if topic in sent:
                sent[topic].append((number, timestamp, key, value))
        producer.flush()
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for part in range(3):
            producer.send("transactional", key=b"k", value=b"%d.%d" % (number, part)).get(20)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)
    for number in range(30):
        value = None if number % 7 == 6 else b"%d" % number
        producer.send("compacted", key=b"k%d" % (number % 3), value=value).get(20)
        time.sleep(0.02)
    deadline = time.monotonic() + 30
    while len(list(Path(folder, "compacted-0").glob("*.log"))) > 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    return sent


def consume(bootstrap: str, *topics: str) -> Seen:
    seen: Seen = {topic: [] for topic in topics}
    consumer = KafkaConsumer(
        *topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=3000
    )
    for message in consumer:
        seen[message.topic].append((message.offset, message.timestamp, message.key, message.value))
    return seen


if __name__ == "__main__":
    _, bootstrap, command, *rest = sys.argv
    print(repr({"create": create, "fill": fill, "consume": consume}[command](bootstrap, *rest)))
