"""What a broker for tests is started with: Kafka's settings, as a test writes them."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

MEMORY = "/dev/shm"
MEMORY_BYTES_MIN = 1 << 30
"""Containers often have 64 MiB there, which one careless test would fill; then rather the disk."""


def texts(settings: Mapping[str, object], keywords: Mapping[str, object]) -> dict[str, str]:
    """`num_partitions=3` is `num.partitions=3`; true and false are written as Kafka does."""
    named = {**settings, **{name.replace("_", "."): value for name, value in keywords.items()}}
    return {name: text(value) for name, value in named.items()}


def text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(text, value))
    return str(value)


@contextmanager
def scratch() -> Iterator[str]:
    """A directory for the data, in memory where there is enough of it; removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="trilogue-", dir=roomy(), ignore_cleanup_errors=True) as path:
        yield path


def roomy() -> str | None:
    try:
        free = shutil.disk_usage(MEMORY).free
    except OSError:
        return None
    return MEMORY if free >= MEMORY_BYTES_MIN and os.access(MEMORY, os.W_OK | os.X_OK) else None
