"""`trilogue`: finds the command, and turns what goes wrong into one line and an exit code.

0: done.  1: could not be done; why is on stderr.  2: not understood.
Commands import what they need when they run: help must not wait for a broker to load.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from trilogue import __version__
from trilogue.cli import start, wire
from trilogue.cli.failed import Failed


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="trilogue",
        description="A broker that speaks Kafka's protocol, in Python.",
        epilog="`trilogue COMMAND --help` tells more.",
    )
    top.add_argument("--version", action="version", version=f"trilogue {__version__}")
    top.set_defaults(run=None, usage=top)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    start.add_to(commands)
    wire.add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.run is None:
        options.usage.print_help()
        return 0
    try:
        options.run(options)
        sys.stdout.flush()
    except Failed as failed:
        print(f"trilogue: {failed}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # we were piped into something like `head`, which has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
