"""Have things go wrong in a broker that was begun with `trilogue start --faults`, for tests in any language.

trilogue faults add Produce --topic orders --nth 3 --answer NOT_ENOUGH_REPLICAS
trilogue faults add Fetch --client-id shop --delay 2
trilogue faults add Produce --times 1 --close after
trilogue faults list
trilogue faults remove 1
trilogue faults clear

What happens, and to which requests, is told in docs/testing.md.
"""

import argparse
import json
import os
import socket
from collections.abc import Callable
from typing import Any

from trilogue.cli.failed import Failed
from trilogue.cli.output import show_json, show_rows

VARIABLE = "TRILOGUE_FAULTS"
HOST, DEFAULT_PORT = "127.0.0.1", 9099
TIMEOUT_SECONDS = 10.0


def add_to(command: argparse.ArgumentParser) -> None:
    verbs = command.add_subparsers(metavar="VERB")

    def verb(name: str, purpose: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        made.add_argument(
            "--faults-port",
            metavar="PORT",
            type=int,
            default=os.environ.get(VARIABLE) or DEFAULT_PORT,
            help=f"what the broker was told by --faults (${VARIABLE}, or {DEFAULT_PORT})",
        )
        made.add_argument("--json", action="store_true", help="for programs: JSON")
        made.set_defaults(run=run)
        return made

    add = verb("add", "let something happen to requests of an API", run_add)
    add.add_argument("api", metavar="API", help="by Kafka's name, as Produce")
    which = add.add_argument_group("which of them")
    which.add_argument("--topic")
    which.add_argument("--partition", type=int)
    which.add_argument("--group")
    which.add_argument("--transactional-id")
    which.add_argument("--client-id")
    which.add_argument("--nth", type=int, help="that one alone; with --times so many from there on")
    which.add_argument("--times", type=int, help="the first so many")
    which.add_argument("--probability", type=float, help="each by chance")
    which.add_argument("--seed", type=int, help="of that chance (0)")
    what = add.add_argument_group("what happens").add_mutually_exclusive_group(required=True)
    what.add_argument("--answer", metavar="ERROR", help="refuse with this error; nothing of it is done")
    what.add_argument("--delay", metavar="SECONDS", type=float, help="do it, and answer so late")
    what.add_argument("--drop", action="store_true", help="do it, and say nothing any more")
    what.add_argument("--close", choices=["before", "after"], help="close the connection before or after it is done")
    what.add_argument("--corrupt", action="store_true", help="damage the records of the answer")
    verb("list", "all faults, and how often they have happened", run_list)
    remove = verb("remove", "a fault does not happen any more", run_remove)
    remove.add_argument("number", type=int, help="as `list` shows it")
    verb("clear", "no fault happens any more", run_clear)


WHICH = ("topic", "partition", "group", "transactional_id", "client_id", "nth", "times", "probability", "seed")


def run_add(options: argparse.Namespace) -> None:
    asked = {name: getattr(options, name) for name in WHICH if getattr(options, name) is not None}
    for what in ("answer", "delay", "close"):
        if (value := getattr(options, what)) is not None:
            asked |= {"what": what, "value": value}
    for what in ("drop", "corrupt"):
        if getattr(options, what):
            asked |= {"what": what}
    show(options, ask(options.faults_port, {"do": "add", "api": options.api, **asked}))


def run_list(options: argparse.Namespace) -> None:
    show(options, ask(options.faults_port, {"do": "list"}))


def run_remove(options: argparse.Namespace) -> None:
    show(options, ask(options.faults_port, {"do": "remove", "number": options.number}))


def run_clear(options: argparse.Namespace) -> None:
    ask(options.faults_port, {"do": "clear"})


def show(options: argparse.Namespace, faults: list[dict[str, Any]]) -> None:
    if options.json:
        show_json(faults)
    elif faults:
        show_rows(
            ["number", "fault", "seen", "fired"],
            [[each["number"], each["says"], each["seen"], each["fired"]] for each in faults],
        )


def ask(port: int, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The faults that the broker answers with."""
    try:
        with socket.create_connection((HOST, port), TIMEOUT_SECONDS) as sock, sock.makefile("rw") as lines:
            lines.write(json.dumps(asked) + "\n")
            lines.flush()
            line = lines.readline()
    except OSError as error:
        raise Failed(
            f"no broker takes faults at {HOST}:{port} ({error}); `trilogue start --faults` starts one that does"
        ) from None
    try:
        answer = json.loads(line)
    except ValueError:
        raise Failed(f"what listens at {HOST}:{port} does not take faults; say the port with --faults-port") from None
    if "error" in answer:
        raise Failed(answer["error"])
    faults: list[dict[str, Any]] = answer["faults"]
    return faults
