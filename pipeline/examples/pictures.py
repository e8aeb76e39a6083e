"""All examples on a broker of their own, and their pictures: `make examples`.

python -m trilogue.pipeline.examples.pictures FOLDER
"""

import shutil
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from trilogue.pipeline import reading
from trilogue.pipeline.examples.__main__ import EXAMPLES, fill
from trilogue.pipeline.examples.drawing import rows_of
from trilogue.pipeline.run import run_on
from trilogue.pipeline.spark import session

HOME = Path(__file__).parent
START_SECONDS = 20


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        port_file = Path(scratch, "port")
        command = [str(Path(sys.executable).with_name("trilogue")), "start", "--ephemeral", "--port=0"]
        broker = subprocess.Popen([*command, f"--port-file={port_file}"], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not port_file.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            draw_all(f"127.0.0.1:{port_file.read_text()}", Path(scratch), out)
        finally:
            broker.terminate()
            broker.wait(START_SECONDS)


def draw_all(bootstrap: str, scratch: Path, out: Path) -> None:
    from msgspec.structs import replace

    # One session for all: the one that asks for the most jars, Delta's.
    spark = session(reading.read(HOME / "changes" / "pipeline.toml"))
    try:
        for name in EXAMPLES:
            toml = scratch / name / "pipeline.toml"
            shutil.copytree(HOME / name, toml.parent)
            print(f"{name}: {fill(name, bootstrap):,} records")
            pipeline = reading.read(toml)
            found = replace(pipeline, source=replace(pipeline.source, bootstrap=bootstrap))
            run_on(spark, found, say=print)
            picture = out / f"{name}.png"
            import_module(f"trilogue.pipeline.examples.{name}.plot").draw(rows_of(spark, toml), picture)
            print(picture)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
