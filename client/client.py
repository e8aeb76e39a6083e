"""A client of a whole cluster: who leads what, a link to each broker, and patience.

    async with Client([Address("127.0.0.1", 9092)], Tasks()) as client:
        await client.call(ListGroupsRequest(), ListGroupsResponse)

`call` asks any broker, `call_controller` the controller, `call_leader` whoever leads a partition.  They raise what goes
wrong; `persist` repeats what may go well later.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Self, TypeVar

from trilogue.client.dialogue import check
from trilogue.client.errors import CannotConnect, ClientError, ConnectionLost, TimedOut
from trilogue.client.link import SOFTWARE, TIMEOUT_SECONDS, Link, connect
from trilogue.client.world import Address, World
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import Request, Response

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 1.0
"""Between attempts: short at first, because most troubles are elections that are over at once; doubled each time."""

NO_NODE = -1

S = TypeVar("S", bound=Response)
T = TypeVar("T")


class Client:
    """Links are made when they are needed.  `timeout` is for one answer, and for patience as a whole."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        world: World,
        *,
        client_id: str = SOFTWARE,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.world, self.timeout = world, timeout
        self._bootstrap, self._client_id = bootstrap, client_id
        self._links: dict[Address, Link] = {}
        self._nodes: dict[int, Address] = {}
        self._controller = NO_NODE
        self._leaders: dict[tuple[str, int], int] = {}

    async def __aenter__(self) -> Self:
        await self.any()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    # -- links ---------------------------------------------------------------------------------

    async def any(self) -> Link:
        """A link to some broker: one that is open, or else to the first that answers."""
        for link in self._links.values():
            if not link.closed:
                return link
        problem = CannotConnect("there is no broker to connect to")
        for address in dict.fromkeys((*self._nodes.values(), *self._bootstrap)):
            try:
                return await self.link(address)
            except CannotConnect as error:
                problem = error
        raise problem

    async def link(self, address: Address) -> Link:
        known = self._links.get(address)
        if known is not None and not known.closed:
            return known
        made = await connect(self.world, address, client_id=self._client_id, seconds=self.timeout)
        quicker = self._links.get(address)
        if quicker is not None and not quicker.closed:  # another task, while we were connecting
            made.close()
            return quicker
        self._links[address] = made
        return made

    async def node(self, node_id: int) -> Link:
        if node_id not in self._nodes:
            await self.metadata([])
        if node_id not in self._nodes:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} is not in the cluster")
        try:
            return await self.link(self._nodes[node_id])
        except CannotConnect as error:
            raise CannotConnect(f"{error}: where broker {node_id} says it is (advertised.listeners)") from None

    # -- metadata ------------------------------------------------------------------------------

    async def metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> MetadataResponse:
        """Of these topics, or of all.  Remembers who leads what."""
        wanted = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        answer = await self.call(request, MetadataResponse)
        self._nodes = {each.node_id: Address(each.host, each.port) for each in answer.brokers}
        self._controller = answer.controller_id
        for topic in answer.topics:
            for each in topic.partitions:
                self._leaders[topic.name or "", each.partition_index] = each.leader_id
        return answer

    async def topic(self, name: str, *, create: bool = False) -> MetadataResponse.Topic:
        """One topic, which has to be there."""
        (found,) = (await self.metadata([name], create=create)).topics
        check(found.error_code)
        return found

    async def leader(self, topic: str, partition: int) -> Link:
        if (topic, partition) not in self._leaders:
            found = await self.topic(topic)
            if partition not in {each.partition_index for each in found.partitions}:
                problem = f"{topic} has {len(found.partitions)} partitions, so no partition {partition}"
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
        node = self._leaders[topic, partition]
        if node == NO_NODE:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader at the moment")
        return await self.node(node)

    def forget(self) -> None:
        """What we know may be old: look again when it is needed."""
        self._leaders.clear()
        self._nodes.clear()
        self._controller = NO_NODE

    # -- asking --------------------------------------------------------------------------------

    async def call(self, request: Request, response: type[S], *, cap: int | None = None) -> S:
        return await (await self.any()).call(request, response, cap=cap, seconds=self.timeout)

    async def call_controller(self, request: Request, response: type[S], *, cap: int | None = None) -> S:
        if self._controller == NO_NODE:
            await self.metadata([])
        if self._controller == NO_NODE:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment")
        link = await self.node(self._controller)
        return await link.call(request, response, cap=cap, seconds=self.timeout)

    async def call_leader(
        self, topic: str, partition: int, request: Request, response: type[S], *, cap: int | None = None
    ) -> S:
        return await (await self.leader(topic, partition)).call(request, response, cap=cap, seconds=self.timeout)

    async def persist(self, attempt: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Attempt until it works, is refused for good, or the time is up: then the last trouble is raised."""
        deadline = self.world.now() + (self.timeout if seconds is None else seconds)
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await attempt()
            except (BrokerError, ClientError) as error:
                if not may_go_well_later(error) or self.world.now() + pause > deadline:
                    raise
            self.forget()
            await self.world.pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def may_go_well_later(error: BrokerError | ClientError) -> bool:
    if isinstance(error, BrokerError):
        return error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE
    return isinstance(error, CannotConnect | ConnectionLost | TimedOut)
