"""Bytes to messages and back: Kafka's protocol, declared once for all its versions.  Pure."""
