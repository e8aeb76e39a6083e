"""Kafka's requests and responses, one file per API."""
