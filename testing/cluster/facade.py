"""`Cluster`: several brokers for a test, in a thread, up in half a second."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Self, TypeVar

from trilogue.broker.server import Server
from trilogue.testing.cluster.nodes import Nodes, running
from trilogue.testing.faults.faults import Faults
from trilogue.testing.history import History
from trilogue.testing.keeping import Kept, NotRunning, keep
from trilogue.testing.settings import texts

T = TypeVar("T")

BROKERS_MAX = 9
"""More are no use to a test, and each is a listener with a dozen tasks."""

NOT_YET = "this cluster has not been started: use it in `with Cluster() as cluster:`, or call `start()` first"
NO_MORE = "this cluster has ended; `with` or `start()` begins it anew, without what it had"
TWICE = "this cluster is running already: `with` it once, and make another `Cluster()` for a second one"


class ClusterBroker:
    """One of them: `cluster[1]`."""

    def __init__(self, cluster: "Cluster", node_id: int) -> None:
        self._cluster, self.node_id = cluster, node_id
        self.faults, self.history = Faults(), History(always=cluster.records)

    @property
    def runs(self) -> bool:
        return self._cluster._nodes.node(self.node_id).life is not None

    @property
    def server(self) -> Server:
        """To look inside.  It lives in another thread: look, and do not touch."""
        return self._cluster._nodes.life(self.node_id).server

    @property
    def host(self) -> str:
        return self._cluster._nodes.node(self.node_id).address[0]

    @property
    def port(self) -> int:
        """The same in all its lives."""
        return self._cluster._nodes.node(self.node_id).address[1]

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"


class Cluster:
    """Brokers 1 to `brokers`, with settings as those of `Broker`.  Topics have as many replicas, three at most.

    What waits here takes as long as it takes the brokers, and raises `ClusterError` when it takes too long.
    """

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        history: bool = False,
        **keywords: object,
    ) -> None:
        if not 1 <= brokers <= BROKERS_MAX:
            raise ValueError(f"a cluster for tests has 1 to {BROKERS_MAX} brokers, not {brokers}")
        self._settings = texts(settings or {}, keywords)
        self.records = history
        self._brokers = {each: ClusterBroker(self, each) for each in range(1, brokers + 1)}
        self._kept: Kept[Nodes] | None = None
        self._why_not = NOT_YET

    # -- life ----------------------------------------------------------------------------------

    def _live(self) -> AbstractAsyncContextManager[Nodes]:
        faults = {each.node_id: each.faults for each in self}
        return running(self._settings, faults, {each.node_id: each.history for each in self})

    def start(self) -> Self:
        if self._kept is not None:
            raise RuntimeError(TWICE)
        self._kept = keep("trilogue-cluster", self._live)
        return self

    def end(self) -> None:
        kept = self._running
        self._kept, self._why_not = None, NO_MORE
        kept.end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.end()

    @property
    def _running(self) -> Kept[Nodes]:
        if self._kept is None:
            raise NotRunning(self._why_not)
        return self._kept

    @property
    def _nodes(self) -> Nodes:
        return self._running.it

    def _ask(self, work: Callable[..., Awaitable[T]], *arguments: object) -> T:
        return self._running.ask(partial(work, *arguments))

    # -- its brokers ---------------------------------------------------------------------------

    def __getitem__(self, node_id: int) -> ClusterBroker:
        if node_id not in self._brokers:
            raise KeyError(f"there is no broker {node_id}: choose among {', '.join(map(str, self._brokers))}")
        return self._brokers[node_id]

    def __iter__(self) -> Iterator[ClusterBroker]:
        return iter(self._brokers.values())

    def __len__(self) -> int:
        return len(self._brokers)

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`: all of them, whether they run or not."""
        return ",".join(each.bootstrap for each in self)

    # -- what can be done to them --------------------------------------------------------------

    def kill(self, broker: int) -> None:
        """As by `kill -9`: it hands nothing over and closes nothing.  The others notice at once."""
        self._ask(self._nodes.kill, broker)

    def stop(self, broker: int) -> None:
        """In order: others lead before it ends."""
        self._ask(self._nodes.stop, broker)

    def restart(self, broker: int) -> None:
        """With its data, at its address; stops it first if it runs."""
        self._ask(self._nodes.restart, broker)

    def pause(self, broker: int) -> None:
        """It hangs: it answers nobody, fetches nothing, and its session ends, so that others lead."""
        self._ask(self._nodes.pause, broker)

    def resume(self, broker: int) -> None:
        """It goes on: it is taken in again, and then answers what it was asked meanwhile."""
        self._ask(self._nodes.resume, broker)

    def partition(self, one: int, other: int) -> None:
        """These two cannot reach each other.  Clients reach both, and both the store.

        A follower that is cut off is not in sync any more when it has lacked something for a second.
        """
        self._running.do(partial(self._nodes.partition, one, other))

    def slow(self, broker: int, seconds: float) -> None:
        """All its answers are so late, to clients and to the other brokers; 0 is as usual."""
        self._running.do(partial(self._nodes.slow, broker, seconds))

    def heal(self) -> None:
        """Nobody hangs, is slow, or cut off any more.  Who was killed or stopped stays so."""
        self._ask(self._nodes.heal)

    # -- who does what -------------------------------------------------------------------------

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """As soon as there is one that runs."""
        return self._ask(self._nodes.state, topic, partition).leader

    def in_sync(self, topic: str, partition: int = 0, *, wait_for: Collection[int] | None = None) -> set[int]:
        """Which brokers are in sync with its leader; as soon as it is these, if they are said."""
        return self._ask(self._nodes.in_sync, topic, partition, wait_for)

    def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None:
        """Another leads it from here on.  It has to be in sync."""
        self._ask(self._nodes.move_leader, topic, partition, to)

    # -- time, and beginning anew --------------------------------------------------------------

    def reset(self) -> None:
        """All brokers run and are well, and all topics, groups, faults and what was recorded are gone."""
        self._ask(self._nodes.reset)

    def advance(self, seconds: float, *, grace: float | None = None) -> None:
        """As `Broker.advance`, on all that run."""
        self._running.do(partial(self._nodes.advance, seconds, grace))

    def run_retention(self) -> None:
        """As that of `Broker`, on all that run."""
        self._ask(self._nodes.run_retention)

    def run_compaction(self) -> None:
        """As that of `Broker`, on all that run."""
        self._ask(self._nodes.run_compaction)
