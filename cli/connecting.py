"""What commands that talk to a broker share: where it is, how long to wait, what to say if it is not there."""

import argparse
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from trilogue.cli.failed import Failed
from trilogue.client.world import Address

if TYPE_CHECKING:
    from trilogue.client.client import Client

VARIABLE = "TRILOGUE_BOOTSTRAP"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
TIMEOUT_SECONDS = 10.0


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get(VARIABLE) or DEFAULT_BOOTSTRAP,
        help=f"a broker, or several with commas between them (${VARIABLE}, or {DEFAULT_BOOTSTRAP})",
    )
    command.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=TIMEOUT_SECONDS,
        help=f"how long to wait for an answer ({TIMEOUT_SECONDS:g})",
    )
    command.add_argument("--json", action="store_true", help="for programs: JSON")


def talk(options: argparse.Namespace, work: "Callable[[Client], Coroutine[Any, Any, None]]") -> None:
    """Do a command's work with a client; what goes wrong becomes one line.

    On a blocking socket: a command is over before trio, which takes 110 ms to import, would have begun.
    """
    from trilogue.client.blocking import Blocking, run
    from trilogue.client.client import Client
    from trilogue.client.errors import CannotConnect, ClientError
    from trilogue.wire.errors import BrokerError

    known = addresses(options)

    async def main() -> None:
        client = Client(known, Blocking(), client_id="trilogue-cli", timeout=options.timeout)
        try:
            await client.any()
        except CannotConnect as error:
            hint = "`trilogue start` starts a broker, --bootstrap says where one is"
            raise Failed(f"{error}; {hint}") from None
        try:
            await work(client)
        finally:
            client.close()

    try:
        run(main())
    except ClientError as error:
        raise Failed(str(error)) from None
    except BrokerError as error:
        raise Failed(f"{error} ({error.code.name})") from None


def addresses(options: argparse.Namespace) -> list[Address]:
    try:
        return [Address.parse(each) for each in options.bootstrap.split(",")]
    except ValueError as error:
        raise Failed(f"--bootstrap: {error}") from None
