"""One writer of a table at a time.

A second one, say of a schedule that overtakes itself, would throw away what the first has staged.  The lock goes with
the process that holds it, however that ends.  Only this machine's folders have one; elsewhere Spark's checkpoint
notices a second run of the same pipeline, though later.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trilogue.pipeline.errors import PipelineError


@contextmanager
def alone(table: str) -> Iterator[None]:
    local = table.removeprefix("file://")
    if "://" in local:
        yield
        return
    place = Path(local, "_trilogue", "lock")
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place, "a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"{table}: another pipeline is writing to this table at the moment") from None
        yield
