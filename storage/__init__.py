"""Batches to files and back, in Kafka's own file formats.  Synchronous; no clock, no tasks."""
