"""What groups and transactions cost, beside Apache Kafka: heartbeats of 1,000 groups, offset commits, transactions.

python -m bench.groups

Both brokers run side by side and are asked in turns, so that both have the same weather.
"""

import os
import statistics
import time

from bench.asking import Broker, Connection, both, encoded
from bench.transactions import TOPIC, Measured, Producer, transactions
from trilogue.wire.apis.create_topics import CreateTopicsRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.errors import ErrorCode

GROUPS = 1000
CONNECTIONS = 50
HEARTBEAT_SECONDS = 3.0
MEASURE_SECONDS = 12.0
COMMITS = 10_000
"""Of one round."""
IN_FLIGHT = 20
ROUNDS = 3


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


def heartbeats(broker: Broker) -> Measured:
    connections = [Connection(broker.address) for _ in range(CONNECTIONS)]
    beats: list[list[bytes]] = [[] for _ in connections]
    for number in range(GROUPS):
        beats[number % CONNECTIONS] += join(connections, f"bench-{os.getpid()}-{number}")
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
    seconds = time.monotonic() - begin
    return Measured(done / seconds, (broker.cpu_seconds() - used) / done * 1e6)


# -- offset commits ----------------------------------------------------------------------------------


def commits(broker: Broker) -> Measured:
    connection = Connection(broker.address)
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
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
    return Measured(COMMITS / seconds, (broker.cpu_seconds() - used) / COMMITS * 1e6)


# -- all of it ---------------------------------------------------------------------------------------


def prepare(broker: Broker) -> None:
    connection = Connection(broker.address)
    topic = CreateTopicsRequest.Topic(name=TOPIC, num_partitions=1, replication_factor=1)
    connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4)
    for kind in (0, 1):
        while connection.ask(FindCoordinatorRequest(key="g", key_type=kind), 1).error_code:
            time.sleep(0.2)
    time.sleep(1)


def show(what: str, broker: Broker, rounds: list[Measured]) -> None:
    rates = [each.per_second for each in rounds]
    cpu = statistics.median(each.cpu_us for each in rounds)
    spread = f"{min(rates):.0f}-{max(rates):.0f}" if len(rates) > 1 else ""
    print(f"{what:32} {broker.name:14} {statistics.median(rates):7.0f}/s {spread:13} {cpu:6.0f} us of CPU each")


def main() -> None:
    with both() as brokers:
        for broker in brokers:
            prepare(broker)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {ROUNDS} rounds")
        for what, second in (("transactions, generation 2", True), ("transactions, generation 1", False)):
            producers = [Producer(each.address, f"bench-{second}", second=second) for each in brokers]
            for broker, producer in zip(brokers, producers, strict=True):
                transactions(broker, producer)  # to warm up
            rounds = [[transactions(*pair) for pair in zip(brokers, producers, strict=True)] for _ in range(ROUNDS)]
            for number, broker in enumerate(brokers):
                show(what, broker, [each[number] for each in rounds])
        for broker in brokers:
            commits(broker)
        rounds = [[commits(each) for each in brokers] for _ in range(ROUNDS)]
        for number, broker in enumerate(brokers):
            show(f"offset commits, {IN_FLIGHT} in flight", broker, [each[number] for each in rounds])
        for broker in brokers:
            told = heartbeats(broker)
            share = told.per_second * told.cpu_us / 1e6
            show(f"heartbeats of {GROUPS} groups of 2", broker, [told])
            print(f"{'':32} {broker.name:14} {share:.1%} of a core")


if __name__ == "__main__":
    main()
