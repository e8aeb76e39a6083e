"""The pytest plugin: a fixture `trilogue`, a broker of the test's own.

    def test_orders(trilogue):
        producer = KafkaProducer(bootstrap_servers=trilogue.bootstrap)

    @pytest.mark.trilogue(num_partitions=3, log_retention_ms=1000)
    def test_with_settings(trilogue):
        ...

Every test gets a new broker rather than one that was reset.  It is up in 2 ms, and what the clients of another test
still do in the background (a consumer that makes its topic again, say) cannot reach it.  `trilogue_module` is one for
a module, `trilogue_session` one for the whole session, or for each of xdist's workers; call `reset()` where that
matters.  Settings for all of them are in the ini option `trilogue_settings`, those of a module in its `pytestmark`.

Projects that have us installed and do not ask for a broker pay nothing: what costs time is imported by the fixtures.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trilogue.testing.broker import Broker
    from trilogue.testing.cluster.facade import Cluster

SETTINGS = "trilogue_settings"
MARKER = "trilogue(settings=None, **settings): start this test's (or module's) broker with these settings"

OWN = {"trilogue", "trilogue_cluster"}
"""Fixtures that a test's own marker can be honoured by."""

CANNOT = {
    "trilogue_module": "one for the whole module: set it in the module with `pytestmark = pytest.mark.trilogue(...)`",
    "trilogue_session": f"one for the whole session: set it with `{SETTINGS} =` in pytest's ini file",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(SETTINGS, "settings of all brokers of trilogue's fixtures, one `name=value` a line", "linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that nobody can honour is an error, and not forgotten in silence."""
    if item.get_closest_marker("trilogue") is None:
        return
    asked = set(getattr(item, "fixturenames", ()))
    if asked & OWN:
        return
    for node, _ in item.iter_markers_with_node("trilogue"):
        for name, why in CANNOT.items():
            if name in asked and (name == "trilogue_session" or not isinstance(node, pytest.Module)):
                pytest.fail(f"settings cannot be given to {name} here, which is {why}", pytrace=False)


def common(config: pytest.Config) -> dict[str, str]:
    """What the ini file says."""
    found = {}
    for line in config.getini(SETTINGS):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{SETTINGS}: write name=value, not {line!r}")
        found[name.strip()] = value.strip()
    return found


def told(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of all, and over them those of the closest marker, as it has them: in a mapping and as keywords."""
    marker = request.node.get_closest_marker("trilogue")
    (mine,) = (marker.args if marker else ()) or ({},)
    return {**common(request.config), **mine}, dict(marker.kwargs) if marker else {}


def started_for(request: pytest.FixtureRequest) -> "Broker":
    from trilogue.testing.broker import Broker

    settings, keywords = told(request)
    keywords.pop("brokers", None)  # is for the cluster that the test has beside it
    return Broker(settings, **keywords)


@pytest.fixture
def trilogue(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker that speaks Kafka's protocol, of this test's own; `trilogue.bootstrap` is where.

    Settings: `@pytest.mark.trilogue(num_partitions=3)`.  Has `faults`, `history`, `reset`, `advance`,
    `run_retention`, `run_compaction`.
    """
    with started_for(request) as broker:
        yield broker


@pytest.fixture
def trilogue_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Three brokers of this test's own, that can be killed, stopped, paused and parted; `.bootstrap` is where.

    Settings: `@pytest.mark.trilogue(brokers=5, min_insync_replicas=2)`.
    """
    from trilogue.testing.cluster.facade import Cluster

    settings, keywords = told(request)
    with Cluster(keywords.pop("brokers", 3), settings, **keywords) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trilogue_module(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """One broker for the module.  Settings: `pytestmark = pytest.mark.trilogue(num_partitions=3)` in it."""
    with started_for(request) as broker:
        yield broker


@pytest.fixture(scope="session")
def trilogue_session(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """One broker for the session (for each worker of xdist).  `reset()` makes it as new.

    Settings: the ini option `trilogue_settings`.
    """
    with started_for(request) as broker:
        yield broker
