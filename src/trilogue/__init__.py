"""trilogue: a broker that speaks Kafka's protocol, in Python.

This folder gives the folders beside it their import names (`wire/` is `trilogue.wire`), and the package its version.
"""

__version__ = "0.1.0"
"""The only place that says so: the wheel, `trilogue --version` and what our client tells brokers are made from it."""
