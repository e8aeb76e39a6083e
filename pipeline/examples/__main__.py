"""Makes the topics of an example and fills them."""

import argparse

from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.world import Address
from trilogue.pipeline.examples import changes, clicks, orders
from trilogue.pipeline.examples.sending import send

EXAMPLES = {"orders": orders, "clicks": clicks, "changes": changes}


def fill(name: str, bootstrap: str) -> int:
    example = EXAMPLES[name]

    async def work() -> int:
        async with Client([Address.parse(each) for each in bootstrap.split(",")], Blocking()) as client:
            return await send(client, example.TOPICS, example.records())

    return run(work())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trilogue.pipeline.examples", description=__doc__)
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    options = parser.parse_args()
    print(f"{fill(options.example, options.bootstrap):,} records for {options.example}")


if __name__ == "__main__":
    main()
