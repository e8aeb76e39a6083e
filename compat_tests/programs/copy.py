"""Consume, transform, produce, exactly once, with librdkafka: the twin of Copy.java.

Arguments: bootstrap, name (of the group, the member and the transactional id), input, output, records in a transaction.
Says "started", then "committed" after every transaction, and ends when its group has committed the end of the input.
"""

import sys
import time

import confluent_kafka


def main(bootstrap: str, name: str, source: str, sink: str, most: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "group.instance.id": name,  # whoever comes after us is us: nobody waits for our session to end
            "session.timeout.ms": 6000,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
        }
    )
    print("started", flush=True)
    producer.init_transactions(30)
    consumer.subscribe([source])
    while True:
        messages = consumer.consume(int(most), 0.1)
        if not messages:
            if at_the_end(consumer):
                return
            continue
        producer.begin_transaction()
        for message in messages:
            if message.error():
                raise confluent_kafka.KafkaException(message.error())
            producer.produce(sink, message.value().upper(), partition=message.partition())
        time.sleep(0.01)  # so that a kill finds us in each of the steps
        places = [place for place in consumer.position(consumer.assignment()) if place.offset >= 0]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 30)
        time.sleep(0.01)
        producer.commit_transaction(30)
        print("committed", flush=True)


def at_the_end(consumer: confluent_kafka.Consumer) -> bool:
    places = consumer.committed(consumer.assignment(), 30)
    return bool(places) and all(place.offset == consumer.get_watermark_offsets(place, 30)[1] for place in places)


if __name__ == "__main__":
    main(*sys.argv[1:])
