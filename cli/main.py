"""`trilogue`: finds the command, and turns what goes wrong into one line and an exit code.

0: done.  1: could not be done; why is on stderr.  2: not understood.  130: interrupted.
A command is a module of this folder with `add_to`, loaded only when it is the one: help must not wait for a broker to
load, nor `health` for anything.
"""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from trilogue import __version__
from trilogue.cli.failed import Failed

COMMANDS = {
    "start": "run a broker",
    "topic": "create, list, describe, delete and configure topics",
    "produce": "write records from stdin",
    "consume": "read records to stdout",
    "group": "list, describe, move and delete groups of consumers",
    "txn": "list, describe and abort transactions",
    "cluster": "show the brokers of a cluster",
    "health": "whether a broker is ready: exit code 0 or 1",
    "faults": "have things go wrong in a broker for tests",
    "log": "look into the files of a log, without a broker",
    "pipeline": "turn topics into tables, with Spark",
    "wire": "look at the protocol: decode bytes, show fields",
}
INTERRUPTED = 130
SEEN_ENOUGH = {errno.EPIPE} if os.name == "posix" else {errno.EPIPE, errno.EINVAL}
"""What we hear when we were piped into something like `head`; Windows does not always say it so clearly."""


class Version(argparse.Action):
    """Looked up only when it is asked for: that takes longer than the help."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(version())
        parser.exit()


def version() -> str:
    from importlib import metadata  # trio itself would take much longer to load
    from platform import platform, python_implementation, python_version

    python = f"{python_implementation()} {python_version()}"
    return f"trilogue {__version__} ({python}, trio {metadata.version('trio')}, {platform()})"


def parser(wanted: str | None) -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="trilogue",
        description="A broker that speaks Kafka's protocol, in Python.",
        epilog="`trilogue COMMAND --help` tells more.",
    )
    top.add_argument("--version", action=Version, nargs=0, help="show what a bug report should begin with, and exit")
    top.set_defaults(run=None, usage=top)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.set_defaults(usage=command)
        if name == wanted:
            module = import_module(f"trilogue.cli.{name}")
            command.description = module.__doc__
            module.add_to(command)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    options = parser(next((word for word in words if not word.startswith("-")), None)).parse_args(words)
    if options.run is None:
        options.usage.print_help()
        return 0
    try:
        options.run(options)
        sys.stdout.flush()
    except Failed as failed:
        print(f"trilogue: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno not in SEEN_ENOUGH:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
