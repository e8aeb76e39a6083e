"""ZooKeeper from the jars: one server, on loopback.  For tests and benchmarks.

with ZooKeeper(folder) as zookeeper: ... zookeeper.address
"""

import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import apache

JARS = "zookeeper-3.9.5"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
HEAP = ("-Xmx256m", "-XX:+UseSerialGC")
START_SECONDS = 30
STOP_SECONDS = 20


class ZooKeeper:
    """Runs from `start` to `stop`, on the same port and data every time."""

    def __init__(
        self,
        folder: Path,
        changed: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
        port: int = 0,
        host: str = "127.0.0.1",
        within: tuple[str, ...] = (),
    ) -> None:
        """`within` is what runs it, if that is elsewhere."""
        self.folder, self._options, self._host, self._within = folder, options, host, within
        self.port = port or apache.free_port()
        self.address = f"{host}:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        given = {
            "tickTime": "200",  # sessions are looked at so often: short ones end in time
            "minSessionTimeout": "500",
            "maxSessionTimeout": "60000",
            "dataDir": str(folder / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": host,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            **(changed or {}),
        }
        (folder / "zoo.cfg").write_text("".join(f"{name}={value}\n" for name, value in given.items()))

    def start(self) -> None:
        with open(self.folder / "zookeeper.log", "ab") as log:
            self.process = subprocess.Popen(
                [*self._within, *apache.command(MAIN, "zoo.cfg", options=(*HEAP, *self._options), jar_set=JARS)],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._serves():  # it listens a little before that
            self._must_run()
            if time.monotonic() > deadline:
                raise TimeoutError("ZooKeeper does not serve")
            time.sleep(0.05)

    def _serves(self) -> bool:
        try:
            with socket.create_connection((self._host, self.port), timeout=1) as asking:
                asking.sendall(b"srvr")
                return asking.recv(1 << 12).startswith(b"Zookeeper version")
        except OSError:
            return False

    def _must_run(self) -> None:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"ZooKeeper ended:\n{(self.folder / 'zookeeper.log').read_text()[-2000:]}")

    def kill(self) -> None:
        """As a power failure would: what it has answered is on its disk."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process = None

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def __enter__(self) -> "ZooKeeper":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
