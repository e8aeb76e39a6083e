"""Connections to the other brokers of the cluster: dialled on the inter-broker listener, and introduced.

Requests of one kind share a connection: what waits for replicas must not hold up what could be answered at once.
Followers have connections of their own (`dial`), since a fetch waits, too.  A broker that hangs is waited for until the
store has given it up; by then others do what it was asked for.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import trio

from trilogue.broker.cluster.image import BrokerInfo, Image
from trilogue.broker.cluster.view import View
from trilogue.broker.security.brokers import MECHANISM, Identity, claim, proof
from trilogue.client.errors import ClientError
from trilogue.client.link import Link, connect
from trilogue.client.tasks import Tasks
from trilogue.client.world import Address, World
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import Request, Response

DIAL_SECONDS = 10.0
ANSWER_SECONDS = 30.0
"""Kafka's request.timeout.ms and socket.connection.setup.timeout.ms, between brokers."""

A = TypeVar("A", bound=Response)


class Way(NamedTuple):
    """One connection's use: to a broker, in this life of it, for requests of a kind."""

    broker: Identity
    kind: type[Request]


class Links:
    def __init__(
        self, view: View, node_id: int, listener: str, fresh_nonce: Callable[[], bytes], world: World | None = None
    ) -> None:
        """`world` is how they are reached: by sockets, unless it is another."""
        self._view, self._node_id, self._listener, self._fresh_nonce = view, node_id, listener, fresh_nonce
        self._world = world or Tasks()
        self._links: dict[Way, Link] = {}
        self._dialling: dict[Way, trio.Lock] = {}
        self._waiting: dict[trio.CancelScope, Way] = {}
        view.listen(self._give_up)

    async def __call__(self, node_id: int, request: Request, version: int, answer: type[A]) -> A:
        """See `inter_broker.InterBroker`."""
        way = Way(Identity(node_id, self._info(node_id).epoch), type(request))
        scope = trio.CancelScope()
        self._waiting[scope] = way
        try:
            with scope:
                link = await self._link(way)
                return await link.call(request, answer, cap=version, seconds=ANSWER_SECONDS)
        except ClientError as error:
            self._forget(way)
            raise BrokerError(ErrorCode.NETWORK_EXCEPTION, f"broker {node_id}: {error}") from None
        finally:
            del self._waiting[scope]
        self._forget(way)
        raise BrokerError(ErrorCode.NETWORK_EXCEPTION, f"broker {node_id} is gone")

    def _give_up(self, before: Image, image: Image) -> None:
        """Who is gone, or has registered anew, does not answer what it was asked before."""
        for scope, way in self._waiting.items():
            info = image.brokers.get(way.broker.node_id)
            if info is None or info.epoch != way.broker.epoch:
                scope.cancel()

    async def _link(self, way: Way) -> Link:
        async with self._dialling.setdefault(way, trio.Lock()):
            link = self._links.get(way)
            if link is None or link.closed:
                self._forget_earlier(way)
                link = self._links[way] = await self.dial(way.broker.node_id)
            return link

    def _forget_earlier(self, way: Way) -> None:
        """Of this broker's lives before."""
        for other in [
            each for each in self._links if each.broker.node_id == way.broker.node_id and each.kind is way.kind
        ]:
            self._forget(other)

    def _forget(self, way: Way) -> None:
        self._dialling.pop(way, None)
        link = self._links.pop(way, None)
        if link is not None:
            link.close()

    async def dial(self, node_id: int) -> Link:
        """A new connection, on which the other knows who we are.  Raises ClientError or BrokerError."""
        info = self._info(node_id)
        where = info.endpoint(self._listener)
        if where is None:
            problem = f"broker {node_id} has no listener {self._listener}"
            raise BrokerError(ErrorCode.LISTENER_NOT_FOUND, problem)
        address = Address(where.host, where.port)
        link = await connect(self._world, address, client_id=f"broker-{self._node_id}", seconds=DIAL_SECONDS)
        try:
            await self._introduce(link)
        except BaseException:
            link.close()
            raise
        return link

    async def _introduce(self, link: Link) -> None:
        image = self._view.image
        me = image.brokers.get(self._node_id)
        if me is None:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "we are not registered")
        shaken = await link.call(SaslHandshakeRequest(mechanism=MECHANISM), SaslHandshakeResponse, seconds=DIAL_SECONDS)
        check(shaken.error_code, "the other broker")
        claimed = claim(Identity(me.id, me.epoch), self._fresh_nonce())
        drawn = await self._say(link, claimed)
        await self._say(link, proof(image.secret, claimed, drawn))

    async def _say(self, link: Link, message: bytes) -> bytes:
        asked = SaslAuthenticateRequest(auth_bytes=message)
        heard = await link.call(asked, SaslAuthenticateResponse, seconds=DIAL_SECONDS)
        check(heard.error_code, "it has another secret than we")
        return bytes(heard.auth_bytes)

    def _info(self, node_id: int) -> BrokerInfo:
        info = self._view.image.brokers.get(node_id)
        if info is None:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} is not there")
        return info

    def close(self) -> None:
        for way in list(self._links):
            self._forget(way)


def check(code: int, problem: str) -> None:
    if code != ErrorCode.NONE:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{problem} ({ErrorCode(code).name})")  # type: ignore[call-arg]
