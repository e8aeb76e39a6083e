"""trilogue: a broker that speaks Kafka's protocol, in Python.

This folder only gives the folders beside it their import names: `wire/` is `trilogue.wire`.
"""

__version__ = "0.1.0"
