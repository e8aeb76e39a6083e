"""Every setting that Apache Kafka 4.3.1 has, by subject; and `own.py`, those that it has not.

The tables are laid out by hand, so that a setting takes a line or two: `ruff format` would give it eight.
"""
