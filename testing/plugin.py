"""The pytest plugin: a fixture `trilogue`, a broker of the test's own.

    def test_orders(trilogue):
        producer = KafkaProducer(bootstrap_servers=trilogue.bootstrap)

    @pytest.mark.trilogue(num_partitions=3, log_retention_ms=1000)
    def test_with_settings(trilogue):
        ...

Every test gets a new broker rather than one that was reset.  It is up in 2 ms, and what the clients of another test
still do in the background (a consumer that makes its topic again, say) cannot reach it.  `trilogue_session` is one
broker for the whole session, or for each of xdist's workers; call its `reset()` where that matters.

Projects that have us installed and do not ask for a broker pay nothing: what costs time is imported by the fixtures.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trilogue.testing.broker import Broker

MARKER = "trilogue(settings=None, **settings): start the `trilogue` fixture's broker with these settings"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def trilogue(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker that speaks Kafka's protocol, of this test's own; `trilogue.bootstrap` is where.

    Settings: `@pytest.mark.trilogue(num_partitions=3)`.  Has `reset`, `advance`, `run_retention`, `run_compaction`.
    """
    from trilogue.testing.broker import Broker

    marker = request.node.get_closest_marker("trilogue")
    with Broker(*marker.args, **marker.kwargs) if marker else Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def trilogue_session() -> "Iterator[Broker]":
    """One broker for the session (for each worker of xdist).  `reset()` makes it as new."""
    from trilogue.testing.broker import Broker

    with Broker() as broker:
        yield broker
