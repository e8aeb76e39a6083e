"""Real clients against a real broker, over sockets: ours, or Apache Kafka."""
