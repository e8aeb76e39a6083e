"""Whose clock a record is stamped by."""

from collections.abc import Callable

import kafka


def test_log_append_time_is_the_brokers(bootstrap: str, make_topic: Callable[..., str]) -> None:
    name = make_topic(1, **{"message.timestamp.type": "LogAppendTime"})
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    told = producer.send(name, b"x", timestamp_ms=1_000).get(10)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    consumer.assign([kafka.TopicPartition(name, 0)])
    record = next(iter(consumer))
    consumer.close()

    assert record.timestamp_type == 1
    assert record.timestamp == told.timestamp > 1_600_000_000_000
