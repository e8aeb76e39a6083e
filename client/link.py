"""A connection to one broker: ask, and wait for the answer; several questions may be on their way.

There is no task that receives.  Whoever waits first receives for all, and hands over when its own answer is there; so
a link needs no nursery, and nothing is left behind when the one who waits is cancelled.
"""

import os
from typing import TYPE_CHECKING, Any, TypeVar

from trilogue import __version__
from trilogue.client.dialogue import Dialogue, Ticket
from trilogue.client.errors import ConnectionLost
from trilogue.client.world import Address, Wire, World
from trilogue.wire.errors import ErrorCode, MalformedMessage
from trilogue.wire.schema import Request, Response

if TYPE_CHECKING:
    from trilogue.client.sasl import Password

SOFTWARE = "trilogue"
TIMEOUT_SECONDS = 30.0
"""For one answer, unless told otherwise: Kafka's request.timeout.ms."""

S = TypeVar("S", bound=Response)


class Link:
    """Made by `connect`."""

    def __init__(self, world: World, wire: Wire, address: Address, client_id: str) -> None:
        self._world, self._wire, self.address = world, wire, address
        self.dialogue = Dialogue(client_id)
        self.closed = False

    async def call(
        self, request: Request, response: type[S], *, cap: int | None = None, seconds: float = TIMEOUT_SECONDS
    ) -> S:
        """Ask and wait, in the highest version that both know and `cap` permits."""
        return await self.answer(await self.ask(request, response, cap=cap, seconds=seconds), seconds=seconds)

    async def ask(
        self, request: Request, response: type[S], *, cap: int | None = None, seconds: float = TIMEOUT_SECONDS
    ) -> Ticket[S]:
        """Send only; `answer` waits.  Answers come in the order of the questions."""
        async with self._wire.sending:
            self._check_open()
            ticket, parts = self.dialogue.ask(request, response, cap)
            await self._send(parts, self._world.now() + seconds)
        return ticket

    async def answer(self, ticket: Ticket[S], *, seconds: float = TIMEOUT_SECONDS) -> S:
        deadline = self._world.now() + seconds
        try:
            while True:
                if (answer := self.dialogue.take(ticket)) is not None:
                    return answer
                async with self._wire.receiving:
                    # Somebody else may have received it while we waited for our turn.
                    if (answer := self.dialogue.take(ticket)) is not None:
                        return answer
                    self._check_open()
                    await self._receive(deadline)
        except BaseException:
            self.dialogue.forget(ticket)
            raise

    def forget(self, ticket: Ticket[Any]) -> None:
        """Nobody will wait for this answer."""
        self.dialogue.forget(ticket)

    def close(self) -> None:
        self.closed = True
        self._wire.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ConnectionLost(f"the connection to {self.address} is closed")

    async def _send(self, parts: list[Any], deadline: float) -> None:
        try:
            await self._wire.send(parts, deadline)
        except BaseException:
            self.close()  # half a request may be out: nothing sensible can follow it
            raise

    async def _receive(self, deadline: float) -> None:
        try:
            data = await self._wire.receive(deadline)
            if not data:
                raise ConnectionLost(f"{self.address} has hung up")
            self.dialogue.feed(data)
        except ConnectionLost:
            self.close()
            raise
        except MalformedMessage as error:
            self.close()
            raise ConnectionLost(f"{self.address} does not speak Kafka's protocol: {error}") from None

    async def greet(self, seconds: float) -> None:
        while True:
            ticket, parts = self.dialogue.greet(SOFTWARE, __version__)
            await self._send(parts, self._world.now() + seconds)
            if self.dialogue.greeted(await self.answer(ticket, seconds=seconds)):
                return

    async def log_in(self, who: "Password", seconds: float) -> None:
        """Raises NotBelieved if the broker does not take us for whom we are, or we not it."""
        from trilogue.client.sasl import NONCE_BYTES, NotBelieved  # what most connections do without
        from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
        from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

        shaken = await self.call(SaslHandshakeRequest(mechanism=who.mechanism), SaslHandshakeResponse, seconds=seconds)
        if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise NotBelieved(f"{self.address} offers {', '.join(shaken.mechanisms)}, not {who.mechanism}")
        if shaken.error_code != ErrorCode.NONE:
            raise NotBelieved(f"{self.address} asks nobody who he is")
        mechanism = who.begin(os.urandom(NONCE_BYTES))
        message = mechanism.first()
        while not mechanism.done:
            asked = SaslAuthenticateRequest(auth_bytes=message)
            heard = await self.call(asked, SaslAuthenticateResponse, seconds=seconds)
            if heard.error_code != ErrorCode.NONE:
                raise NotBelieved(heard.error_message or ErrorCode(heard.error_code).sentence)  # type: ignore[call-arg]
            message = mechanism.hear(bytes(heard.auth_bytes))


async def connect(
    world: World,
    address: Address,
    *,
    client_id: str = SOFTWARE,
    seconds: float = TIMEOUT_SECONDS,
    who: "Password | None" = None,
) -> Link:
    """A link to a broker that has said what it speaks, and knows who we are if that is said."""
    deadline = world.now() + seconds
    link = Link(world, await world.dial(address, deadline), address, client_id)
    try:
        await link.greet(deadline - world.now())
        if who is not None:
            await link.log_in(who, deadline - world.now())
    except BaseException:
        link.close()
        raise
    return link
