"""What groups cost: heartbeats of a thousand groups, and offset commits.

python -m bench.groups [HOST:PORT PID]      without arguments: ours, started here
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import Frames, read_response, write_request
from trilogue.wire.schema import Request, Response

GROUPS = 1000
MEMBERS = 2
CONNECTIONS = 50
HEARTBEAT_SECONDS = 3.0
MEASURE_SECONDS = 12.0
COMMITS = 20_000
IN_FLIGHT = 20
HEARTBEAT_VERSION = 3


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._frames = Frames(100 << 20)
        self._ready: list[bytes] = []

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        while not self._ready:
            self._ready += self._frames.feed(self._socket.recv(1 << 20))
        return self._ready.pop(0)

    def ask(self, request: Request, version: int, answer: type[Response]) -> Response:
        self.send(encoded(request, version))
        return read_response(memoryview(self.receive()), answer, version)[1]


def encoded(request: Request, version: int) -> bytes:
    return b"".join(bytes(part) for part in write_request(request, version, 1, "bench"))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def join(connections: list[Connection], group: str) -> list[bytes]:
    """A stable group; the heartbeats of its members."""
    protocol = JoinGroupRequest.Protocol(name="x", metadata=b"")
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="bench",
        protocols=[protocol],
    )
    first = connections[0].ask(request, 3, JoinGroupResponse)
    members = [first.member_id]
    if MEMBERS == 2:
        connections[1].send(encoded(request, 3))
        beat = HeartbeatRequest(group_id=group, generation_id=first.generation_id, member_id=first.member_id)
        while connections[0].ask(beat, 3, HeartbeatResponse).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        request.member_id = first.member_id
        first = connections[0].ask(request, 3, JoinGroupResponse)
        second = read_response(memoryview(connections[1].receive()), JoinGroupResponse, 3)[1]
        members.append(second.member_id)
    for member in members:
        sync = SyncGroupRequest(group_id=group, generation_id=first.generation_id, member_id=member, assignments=[])
        connections[0].ask(sync, 3, SyncGroupResponse)
    return [
        encoded(HeartbeatRequest(group_id=group, generation_id=first.generation_id, member_id=member), 3)
        for member in members
    ]


def heartbeats(address: tuple[str, int], pid: int) -> str:
    connections = [Connection(address) for _ in range(CONNECTIONS)]
    beats: list[list[bytes]] = [[] for _ in connections]
    for number in range(GROUPS):
        for each in join(connections, f"bench-{os.getpid()}-{number}"):
            beats[number % CONNECTIONS].append(each)
    gap = HEARTBEAT_SECONDS / max(map(len, beats)) / CONNECTIONS
    begin, used, done = time.monotonic(), cpu_seconds(pid), 0
    while time.monotonic() < begin + MEASURE_SECONDS:
        for turn in range(max(map(len, beats))):
            for connection, mine in zip(connections, beats, strict=True):
                connection.send(mine[turn])
                code = read_response(memoryview(connection.receive()), HeartbeatResponse, 3)[1].error_code
                assert code == 0, code
                done += 1
                time.sleep(max(0.0, begin + done * gap - time.monotonic()))
    seconds = time.monotonic() - begin
    share = (cpu_seconds(pid) - used) / seconds
    return f"{GROUPS} groups of {MEMBERS}: {done / seconds:.0f} heartbeats/s take {share:.1%} of a core"


def commits(address: tuple[str, int], pid: int) -> str:
    connection = Connection(address)
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = OffsetCommitRequest.Topic(name="bench", partitions=[partition])
    request = encoded(OffsetCommitRequest(group_id="bench-commits", topics=[topic]), 7)
    begin, used, sent, heard = time.monotonic(), cpu_seconds(pid), 0, 0
    while heard < COMMITS:
        while sent < COMMITS and sent - heard < IN_FLIGHT:
            connection.send(request)
            sent += 1
        answer = read_response(memoryview(connection.receive()), OffsetCommitResponse, 7)[1]
        assert answer.topics[0].partitions[0].error_code == 0
        heard += 1
    seconds = time.monotonic() - begin
    each = (cpu_seconds(pid) - used) / COMMITS
    return f"{COMMITS / seconds:.0f} offset commits/s on one connection; {each * 1e6:.0f} us of CPU each"


def wait_for_coordinator(address: tuple[str, int]) -> None:
    connection = Connection(address)
    for _ in range(100):
        if not connection.ask(FindCoordinatorRequest(key="g", key_type=0), 1, FindCoordinatorResponse).error_code:
            time.sleep(1)  # Apache Kafka still loads the rest of its partitions
            return
        time.sleep(0.2)
    raise TimeoutError("no coordinator")


def measure(address: tuple[str, int], pid: int) -> None:
    connection = Connection(address)
    topic = CreateTopicsRequest.Topic(name="bench", num_partitions=1, replication_factor=1)
    connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4, CreateTopicsResponse)
    wait_for_coordinator(address)
    print(heartbeats(address, pid))
    print(commits(address, pid))


def main() -> None:
    if len(sys.argv) == 3:
        host, _, port = sys.argv[1].rpartition(":")
        measure((host, int(port)), int(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder, "port")
        command = [str(Path(sys.executable).with_name("trilogue")), "start", "--ephemeral", "--port=0"]
        broker = subprocess.Popen([*command, f"--port-file={port_file}"], stdout=subprocess.DEVNULL)
        try:
            while not port_file.exists():
                time.sleep(0.02)
            measure(("127.0.0.1", int(port_file.read_text())), broker.pid)
        finally:
            broker.terminate()
            broker.wait(20)


if __name__ == "__main__":
    main()
