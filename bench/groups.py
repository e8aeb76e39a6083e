"""What groups and transactions cost: heartbeats of 1,000 groups, offset commits, transactions of one record each."""

import time
from collections.abc import Iterator

from bench.asking import Connection, encoded
from bench.brokers import Broker
from bench.transactions import Producer
from bench.trial import Figure, Trial
from bench.trials import fresh
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.errors import ErrorCode

SECTION = "groups"
GROUPS = 1000
CONNECTIONS = 50
HEARTBEAT_SECONDS = 3.0
MEASURE_SECONDS = 6.0
COMMITS = 10_000
IN_FLIGHT = 20
TRANSACTIONS = 500
LOOKS = 100
CPU = Figure("cpu_us", "broker CPU-us each", False)


def find_coordinators(broker: Broker) -> None:
    """Wait until groups and transactions are looked after."""
    for kind in (0, 1):
        for _ in range(LOOKS):
            if not broker.ask(FindCoordinatorRequest(key="g", key_type=kind), 1).error_code:
                break
            time.sleep(0.2)
        else:
            raise TimeoutError(f"{broker.name} has no coordinator")
    time.sleep(1)  # Apache Kafka still loads the rest of its partitions


# -- heartbeats --------------------------------------------------------------------------------------


def join(connections: list[Connection], group: str) -> list[bytes]:
    """A stable group of two; the heartbeats of its members."""
    protocol = JoinGroupRequest.Protocol(name="x", metadata=b"")
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="bench",
        protocols=[protocol],
    )
    first = connections[0].ask(request, 3)
    connections[1].send(encoded(request, 3))
    beat = HeartbeatRequest(group_id=group, generation_id=first.generation_id, member_id=first.member_id)
    while connections[0].ask(beat, 3).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    request.member_id = first.member_id
    first = connections[0].ask(request, 3)
    second = connections[1].hear(JoinGroupRequest.api_key, 3)
    members = [first.member_id, second.member_id]
    for member in members:
        sync = SyncGroupRequest(group_id=group, generation_id=first.generation_id, member_id=member, assignments=[])
        connections[0].ask(sync, 3)
    return [
        encoded(HeartbeatRequest(group_id=group, generation_id=first.generation_id, member_id=member), 3)
        for member in members
    ]


def heartbeats() -> Trial:
    """As often as clients do: every three seconds each.  The groups are made once for each broker, and stay."""
    members: dict[str, tuple[list[Connection], list[list[bytes]]]] = {}

    def prepare(broker: Broker) -> None:
        find_coordinators(broker)
        connections = [Connection(broker.address) for _ in range(CONNECTIONS)]
        beats: list[list[bytes]] = [[] for _ in connections]
        for number in range(GROUPS):
            beats[number % CONNECTIONS] += join(connections, f"bench-{number}")
        members[broker.name] = connections, beats

    def run(broker: Broker) -> dict[str, float]:
        # The other broker's members must not be silent for so long that they are put out: their time is a minute.
        connections, beats = members[broker.name]
        gap = HEARTBEAT_SECONDS / max(map(len, beats)) / CONNECTIONS
        begin, used, done = time.monotonic(), broker.cpu_seconds(), 0
        while time.monotonic() < begin + MEASURE_SECONDS:
            for turn in range(max(map(len, beats))):
                for connection, mine in zip(connections, beats, strict=True):
                    connection.send(mine[turn])
                    code = connection.hear(HeartbeatRequest.api_key, 3).error_code
                    assert code == 0, code
                    done += 1
                    time.sleep(max(0.0, begin + done * gap - time.monotonic()))
        share = (broker.cpu_seconds() - used) / (time.monotonic() - begin)
        return {"share": share * 100, "cpu_us": share * (time.monotonic() - begin) / done * 1e6}

    figures = (Figure("share", "% of a core (aim: below 25)", False), CPU)
    return Trial(SECTION, f"heartbeats of {GROUPS:,} groups of 2", figures, run, prepare)


# -- offset commits ----------------------------------------------------------------------------------


def commits() -> Trial:
    topics: dict[str, str] = {}

    def prepare(broker: Broker) -> None:
        find_coordinators(broker)
        topics[broker.name] = fresh(broker)

    def run(broker: Broker) -> dict[str, float]:
        connection = Connection(broker.address)
        partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=5, committed_metadata="")
        topic = OffsetCommitRequest.Topic(name=topics[broker.name], partitions=[partition])
        request = encoded(OffsetCommitRequest(group_id="bench-commits", topics=[topic]), 7)
        begin, used, sent, heard = time.monotonic(), broker.cpu_seconds(), 0, 0
        while heard < COMMITS:
            while sent < COMMITS and sent - heard < IN_FLIGHT:
                connection.send(request)
                sent += 1
            answer = connection.hear(OffsetCommitRequest.api_key, 7)
            assert answer.topics[0].partitions[0].error_code == 0
            heard += 1
        seconds = time.monotonic() - begin
        connection.close()
        return {"rate": COMMITS / seconds, "cpu_us": (broker.cpu_seconds() - used) / COMMITS * 1e6}

    name = f"offset commits, one connection x{IN_FLIGHT}"
    return Trial(SECTION, name, (Figure("rate", "commits/s (aim: 5,000)"), CPU), run, prepare)


# -- transactions ------------------------------------------------------------------------------------


def transactions(*, second: bool) -> Trial:
    producers: dict[str, Producer] = {}

    def prepare(broker: Broker) -> None:
        producers[broker.name] = Producer(broker.address, f"bench-{second}", fresh(broker), second=second)

    def run(broker: Broker) -> dict[str, float]:
        begin, used = time.monotonic(), broker.cpu_seconds()
        for _ in range(TRANSACTIONS):
            producers[broker.name].transact()
        seconds = time.monotonic() - begin
        return {"rate": TRANSACTIONS / seconds, "cpu_us": (broker.cpu_seconds() - used) / TRANSACTIONS * 1e6}

    name = f"transactions of one record, one producer, generation {2 if second else 1}"
    return Trial(SECTION, name, (Figure("rate", "transactions/s (aim: 300)"), CPU), run, prepare)


def trials() -> Iterator[Trial]:
    yield transactions(second=True)
    yield transactions(second=False)
    yield commits()
    yield heartbeats()
