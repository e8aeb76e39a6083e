"""A broker for other people's tests: in the process, on a free port, gone afterwards.

    from trilogue.testing import Broker

    with Broker() as broker:                        # in a thread of its own
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

    async with Broker(num_partitions=3) as broker:  # in your own trio run; programs on asyncio use `with`
        ...

With pytest, ask for the fixture `trilogue` (see `plugin.py`).  Importing this costs nothing until `Broker` is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilogue.testing.broker import AsyncBroker, Broker

__all__ = ["AsyncBroker", "Broker"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trilogue.testing import broker

    return getattr(broker, name)
