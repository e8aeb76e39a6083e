"""How long `trilogue start` takes, from exec to the first answer, and how much memory it then has.

python -m bench.start              50 starts
python -m bench.start 1000         as many as you like

As installed: pip compiles modules, so here the first start, which is not counted, compiles them into a folder for the
others to find, whatever the environment says about writing bytecode.
"""

import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

STARTS = 50
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A whole request: ApiVersions in version 0, by a client without a name."""
COMMAND = [str(Path(sys.executable).with_name("trilogue")), "start", "--ephemeral", "--port", "0"]
LOOK_SECONDS = 0.001
GIVE_UP_SECONDS = 30.0


class Start(NamedTuple):
    answered_ms: float
    rss_mib: float
    stopped_ms: float


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STARTS
    starts = []
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        once(environment)
        for number in range(count):
            starts.append(once(environment))
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {count}", end="", file=sys.stderr)
    print(f"{count} starts, no failure; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("exec to first ApiVersions", "ms", [each.answered_ms for each in starts])
    show("memory then (RSS)", "MiB", [each.rss_mib for each in starts])
    show("SIGTERM to exit", "ms", [each.stopped_ms for each in starts])


def show(what: str, unit: str, values: list[float]) -> None:
    values = sorted(values)
    p95 = values[min(len(values) - 1, round(0.95 * len(values)))]
    print(f"{what:28} p50 {statistics.median(values):6.1f}  p95 {p95:6.1f}  max {values[-1]:6.1f} {unit}")


def once(environment: dict[str, str]) -> Start:
    with tempfile.TemporaryDirectory() as scratch:
        port_file = Path(scratch, "port")
        begun = time.perf_counter()
        command = [*COMMAND, "--port-file", str(port_file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        try:
            port = wait_for(port_file, process)
            with socket.create_connection(("127.0.0.1", port)) as sock:
                sock.sendall(API_VERSIONS)
                assert len(sock.recv(4)) == 4
                answered = time.perf_counter()
                memory = rss_mib(process.pid)
            process.terminate()
            if process.wait() != 0:
                sys.exit(f"it ended with {process.returncode}")
            return Start((answered - begun) * 1000, memory, (time.perf_counter() - answered) * 1000)
        finally:
            process.kill()


def wait_for(port_file: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not port_file.exists():
        if process.poll() is not None:
            sys.exit(f"it did not start, and ended with {process.returncode}")
        if time.monotonic() > deadline:
            sys.exit(f"it did not start within {GIVE_UP_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    return int(port_file.read_text())


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


if __name__ == "__main__":
    main()
