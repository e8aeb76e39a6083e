"""Connections as strangers make them, both ways of serving them: order, pieces, waiting, and what bad input gets."""

import contextlib
import logging
import os
import random
import socket
import time

import pytest
from posix_only import posix_only

from trilogue.broker.network import guests
from trilogue.broker.requests.registry import APIS
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import Frames, read_response, write_request
from trilogue.wire.records import Record, batches, build

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@pytest.fixture(scope="module", params=[pytest.param("gate", marks=posix_only("the gate needs epoll")), "tasks"])
def transport(request):
    return request.param


@pytest.fixture(scope="module")
def broker(transport):
    with running(trilogue_transport=transport) as broker:
        with Raw(broker) as raw:
            make_topic(raw, "t")
        yield broker


def make_topic(raw, name, partitions=1, **configs):
    settings = [
        CreateTopicsRequest.Topic.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()
    ]
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
    )
    answer = raw.ask(CreateTopicsRequest(topics=[topic]), 5, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [ErrorCode.NONE], answer


def produce_request(value, topic="t", acks=1):
    records = build([Record(0, 1_700_000_000_000, None, value)])
    partition = ProduceRequest.Topic.Partition(index=0, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[ProduceRequest.Topic(name=topic, partition_data=[partition])]
    )


def fetch_request(topic="t", offset=0, wait_ms=0, min_bytes=1, max_bytes=1 << 20):
    partition = FetchRequest.Topic.Partition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=[FetchRequest.Topic(topic=topic, partitions=[partition])],
    )


def values_in(response):
    (topic,) = response.responses
    (partition,) = topic.partitions
    return [bytes(record.value) for batch in batches(partition.records) for record in batch.records()]


# -- frames ----------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(broker):
    with Raw(broker) as raw:
        raw.send(b"".join(b"".join(write_request(HELLO, 3, number, None)) for number in range(500)))

        numbers = [read_response(memoryview(raw.receive()), ApiVersionsResponse, 3)[0] for _ in range(500)]

    assert numbers == list(range(500))


def test_a_request_may_arrive_byte_by_byte(broker):
    with Raw(broker) as raw:
        for byte in b"".join(write_request(HELLO, 3, 9, "slow")):
            raw.send(bytes([byte]))

        assert read_response(memoryview(raw.receive()), ApiVersionsResponse, 3)[0] == 9


@pytest.mark.parametrize("size", [1_000, 131_000, 131_072, 131_080, 900_000])
def test_requests_of_every_size_arrive_whole(broker, size):
    value = random.Random(size).randbytes(size)
    with Raw(broker) as raw:
        make_topic(raw, f"size-{size}")
        frames = [b"".join(write_request(produce_request(value, f"size-{size}"), 9, n, None)) for n in range(3)]
        raw.send(b"".join(frames))
        answers = [read_response(memoryview(raw.receive()), ProduceResponse, 9)[1] for _ in frames]
        found = raw.ask(fetch_request(f"size-{size}", max_bytes=10 << 20), 11, FetchResponse)

    assert [each.responses[0].partition_responses[0].base_offset for each in answers] == [0, 1, 2]
    assert values_in(found) == [value] * 3


@pytest.mark.parametrize("at_once", [True, False])
def test_who_asks_for_something_else_does_not_wait_for_news(broker, at_once):
    """With Kafka it would; Spark's reader loses half a second by that with every batch."""
    with Raw(broker) as raw, Raw(broker) as other:
        make_topic(other, f"waits-{at_once}")
        fetch = b"".join(write_request(fetch_request(f"waits-{at_once}", wait_ms=60_000), 11, 1, None))
        hello = b"".join(write_request(HELLO, 3, 2, None)) * 3
        asked = fetch + hello + fetch + hello
        if at_once:
            raw.send(asked)
        else:
            for byte in asked:
                raw.send(bytes([byte]))
                other.ask(HELLO, 3, ApiVersionsResponse)

        for _ in range(2):
            number, found = read_response(memoryview(raw.receive()), FetchResponse, 11)
            rest = [read_response(memoryview(raw.receive()), ApiVersionsResponse, 3)[0] for _ in range(3)]
            assert (number, values_in(found)) == (1, [])
            assert rest == [2, 2, 2]

        raw.send(fetch)
        other.ask(produce_request(b"news", f"waits-{at_once}"), 9, ProduceResponse)
        found = read_response(memoryview(raw.receive()), FetchResponse, 11)[1]
        assert values_in(found) == [b"news"], "the next one waits again"


def test_a_fetch_behind_a_fetch_does_not_hurry_it(broker):
    with Raw(broker) as raw, Raw(broker) as other:
        make_topic(other, "two")
        raw.send(b"".join(write_request(fetch_request("two", wait_ms=60_000), 11, 1, None)))
        other.ask(HELLO, 3, ApiVersionsResponse)
        raw.send(b"".join(write_request(fetch_request("two", wait_ms=0), 11, 2, None)))
        other.ask(HELLO, 3, ApiVersionsResponse)
        other.ask(produce_request(b"news", "two"), 9, ProduceResponse)

        answers = [read_response(memoryview(raw.receive()), FetchResponse, 11) for _ in range(2)]

    assert [(number, values_in(found)) for number, found in answers] == [(1, [b"news"]), (2, [b"news"])]


def test_what_follows_a_join_that_waits_is_answered_after_it(broker):
    with Raw(broker) as raw, Raw(broker) as other:
        protocols = [JoinGroupRequest.Protocol(name="range", metadata=b"")]
        join = JoinGroupRequest(
            group_id="waiting",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            protocol_type="consumer",
            protocols=protocols,
        )
        first = other.ask(join, 3, JoinGroupResponse)
        raw.send(b"".join(write_request(join, 3, 1, None)))  # waits until the first one has come back
        raw.send(b"".join(write_request(HELLO, 3, 2, None)))
        join.member_id = first.member_id
        deadline = time.monotonic() + 10
        beat = HeartbeatRequest(group_id="waiting", generation_id=first.generation_id, member_id=first.member_id)
        while other.ask(beat, 0, HeartbeatResponse).error_code == ErrorCode.NONE:
            assert time.monotonic() < deadline
        other.ask(join, 3, JoinGroupResponse)

        numbers = [
            read_response(memoryview(raw.receive()), kind, 3)[0] for kind in (JoinGroupResponse, ApiVersionsResponse)
        ]

    assert numbers == [1, 2]


def test_a_fetch_waits_its_time_and_no_longer(broker):
    with Raw(broker) as raw:
        make_topic(raw, "silent")
        begin = time.monotonic()
        found = raw.ask(fetch_request("silent", wait_ms=200), 11, FetchResponse)

    assert values_in(found) == []
    assert time.monotonic() - begin >= 0.2


def test_a_fetch_is_answered_in_time_when_others_have_just_fallen_silent(broker):
    """The gate still waits for them then, by itself; it gives way when its timer expires."""
    with Raw(broker) as waiting, Raw(broker) as busy:
        make_topic(busy, "hurried")
        waiting.send(b"".join(write_request(fetch_request("hurried", wait_ms=300), 11, 1, None)))
        for _ in range(300):
            busy.ask(HELLO, 3, ApiVersionsResponse)

        found = read_response(memoryview(waiting.receive()), FetchResponse, 11)[1]

    assert values_in(found) == []


def test_a_consumer_that_does_not_read_harms_nobody(broker):
    with Raw(broker) as lazy, Raw(broker) as other:
        make_topic(other, "much")
        for _ in range(30):
            other.ask(produce_request(bytes(900_000), "much"), 9, ProduceResponse)
        before = resident_kib()
        for number in range(20):  # half a gigabyte of answers that nobody takes
            lazy.send(b"".join(write_request(fetch_request("much", max_bytes=50 << 20), 11, number, None)))

        for _ in range(50):
            assert other.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
        assert resident_kib() - before < 30 * 1024, "answers that wait are not held in memory"
        frames = Frames(200 << 20)
        taken = 0
        while taken < 20:
            taken += sum(1 for _ in frames.feed(lazy.sock.recv(1 << 20)))


# -- strangers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"\x7f\xff\xff\xff", "2147483647 bytes; the limit is 104857600"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the limit is"),
        (b"\x00\x00\x00\x00", "10 bytes needed, 0 there"),
        (b"\x00\x00\x00\x0a\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff", "API 32767 version 0"),
        (b"\x00\x00\x00\x0a\x00\x03\x00\x63\x00\x00\x00\x01\xff\xff", "API 3 version 99: we answer 0-13"),
    ],
)
def test_who_does_not_speak_kafka_is_hung_up_on_and_named_once(broker, first, said, caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with Raw(broker) as raw:
                raw.send(first)
                assert raw.receive() == b""

    (told,) = [record.getMessage() for record in caplog.records]  # once, not once for each attempt
    assert said in told


def test_what_a_stranger_says_does_not_reach_the_terminal_raw(broker, caplog):
    name = "\x1b[2J\nroot logged in"
    odd = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    with caplog.at_level(logging.WARNING), Raw(broker) as raw:
        raw.ask(odd, 3, ApiVersionsResponse)
        raw.send(b"".join(write_request(produce_request(b"", name, acks=0), 9, 1, name)))
        assert raw.receive() == b""

    (told,) = [record.getMessage() for record in caplog.records]
    assert "\x1b" not in told
    assert "\n" not in told


def test_api_versions_in_a_version_we_lack_is_answered_in_the_oldest(broker):
    with Raw(broker) as raw:
        raw.send(b"\x00\x00\x00\x0c\x00\x12\x00\x63\x00\x00\x00\x05\xff\xff\x00\x00")
        number, answer = read_response(memoryview(raw.receive()), ApiVersionsResponse, 0)
        again = raw.ask(HELLO, 4, ApiVersionsResponse)

    assert (number, answer.error_code) == (5, ErrorCode.UNSUPPORTED_VERSION)
    assert answer.api_keys == [ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)]
    assert {each.api_key for each in again.api_keys} == set(APIS)


@pytest.mark.parametrize("name", ["", "-x", "x y", "x" * 10 + "\n"])
def test_software_that_has_no_proper_name_is_refused(broker, name):
    with Raw(broker) as raw:
        answer = raw.ask(
            ApiVersionsRequest(client_software_name=name, client_software_version="1"), 3, ApiVersionsResponse
        )

    assert answer.error_code == ErrorCode.INVALID_REQUEST


def resident_kib():
    """What this process holds in memory now: the peak would hide what comes after a larger one."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@pytest.mark.slow
def test_ten_thousand_strangers_leave_nothing_behind(broker):
    chance = random.Random(3)
    before = resident_kib()
    for _ in range(10_000):
        with Raw(broker) as raw:
            raw.send(
                chance.choice([b"GET / HTTP/1.0\r\n\r\n", b"\x7f\xff\xff\xff", chance.randbytes(200), b"\x00\x00"])
            )
    with Raw(broker) as raw:
        assert raw.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
    assert resident_kib() - before < 5 * 1024


def test_who_begins_a_size_and_falls_silent_is_closed(transport, monkeypatch):
    monkeypatch.setattr(guests, "SIZE_SECONDS", 0.2)
    monkeypatch.setattr(guests, "SWEEP_SECONDS", 0.05)
    with running(trilogue_transport=transport) as patient, Raw(patient) as raw, Raw(patient) as other:
        raw.send(b"\x00\x00\x00")
        assert raw.receive() == b""
        assert other.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE


def test_slow_writers_hold_little_and_harm_nobody(broker):
    """Fifty announce a frame of 50 MiB each, and send a kilobyte of it."""
    before = resident_kib()
    slow = [Raw(broker) for _ in range(50)]
    for each in slow:
        each.send((50 << 20).to_bytes(4, "big") + bytes(1024))
    with Raw(broker) as other:
        for _ in range(50):
            assert other.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
        for each in slow:
            each.send(b"x")
        assert other.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
    assert resident_kib() - before < 30 * 1024
    for each in slow:
        each.close()


def test_every_key_and_version_gets_an_answer_or_a_clean_hangup(broker, caplog):
    """B3: keys 0 to 100, versions -1 to the last plus two; nothing, noise and less behind the header."""
    chance = random.Random(8)
    with caplog.at_level(logging.ERROR):
        for key in range(101):
            known = APIS.get(key)
            last = known.versions.last if known else 1
            for version in range(-1, last + 3):
                for body in (b"", chance.randbytes(chance.randrange(1, 40))):
                    with Raw(broker) as raw:
                        head = (
                            key.to_bytes(2, "big")
                            + version.to_bytes(2, "big", signed=True)
                            + b"\x00\x00\x00\x01\xff\xff"
                        )
                        raw.send(len(head + body).to_bytes(4, "big") + head + body)
                        raw.sock.settimeout(5)
                        raw.send(b"\xff\xff\xff\xff")  # what comes after is refused: the wait has an end
                        while raw.receive():
                            pass
    assert [record.getMessage() for record in caplog.records] == [], "no bug of ours was met"
    with Raw(broker) as raw:
        assert raw.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE


@posix_only("the limit of descriptors has to be raised")
def test_a_thousand_idle_connections_do_not_slow_anybody_down(broker):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    idle = [Raw(broker) for _ in range(1_000)]
    try:
        with Raw(broker) as raw:
            for _ in range(100):
                answer = raw.ask(produce_request(b"x"), 9, ProduceResponse)
                assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            metadata = raw.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
            assert len(metadata.brokers) == 1
    finally:
        for each in idle:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="congestion control is chosen on Linux only")
def test_what_is_sent_to_this_machine_is_not_paced():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sock:
        guests.unpaced(sock)

        chosen = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert chosen.rstrip(b"\0") == b"reno"


def test_a_peer_on_this_machine_is_known_as_one(broker, monkeypatch):
    unpaced = []
    monkeypatch.setattr(guests, "unpaced", unpaced.append)
    with Raw(broker) as raw:
        raw.ask(HELLO, 3, ApiVersionsResponse)
        (ours,) = unpaced
        assert ours.getpeername() == raw.sock.getsockname()


def test_a_request_larger_than_allowed_is_refused_before_it_is_read(transport):
    with running(trilogue_transport=transport, socket_request_max_bytes="1000") as small, Raw(small) as raw:
        raw.send((1001).to_bytes(4, "big"))
        assert raw.receive() == b""


def test_connections_above_the_limit_are_closed_at_once(transport):
    with running(trilogue_transport=transport, max_connections="2") as few:
        first, second, third = Raw(few), Raw(few), Raw(few)
        assert first.ask(HELLO, 3, ApiVersionsResponse)
        assert second.ask(HELLO, 3, ApiVersionsResponse)
        assert third.receive() == b""
        for each in (first, second, third):
            each.close()


@pytest.mark.parametrize(
    "settings",
    [{"max_connections_per_ip": "1"}, {"max_connections_per_ip_overrides": "10.0.0.1:5,127.0.0.1:1"}],
    ids=["for all", "for one"],
)
def test_a_host_may_have_its_own_limit_and_room_comes_back(transport, settings):
    with running(trilogue_transport=transport, **settings) as few:
        with Raw(few) as first, Raw(few) as second:
            assert first.ask(HELLO, 3, ApiVersionsResponse)
            assert second.receive() == b""
        for _ in range(200):  # the broker hears of the goodbye a moment later
            with Raw(few) as again:
                again.send(b"".join(write_request(HELLO, 3, 1, None)))
                if again.receive():
                    return
        raise AssertionError("there is no room although everybody has left")


def test_an_idle_connection_is_closed(transport):
    with running(trilogue_transport=transport, connections_max_idle_ms="300") as brief, Raw(brief) as raw:
        assert raw.ask(HELLO, 3, ApiVersionsResponse)
        assert raw.receive() == b""


def test_a_connection_may_be_idle_for_ever(transport, monkeypatch):
    monkeypatch.setattr(guests, "SWEEP_SECONDS", 0.02)
    with running(trilogue_transport=transport, connections_max_idle_ms="-1") as patient, Raw(patient) as raw:
        assert raw.ask(HELLO, 3, ApiVersionsResponse)
        time.sleep(0.1)  # several sweeps
        assert raw.ask(HELLO, 3, ApiVersionsResponse)


@posix_only("the limit of descriptors has to be lowered")
def test_without_descriptors_nobody_is_let_in_until_there_are_some(broker, caplog):
    """It waits instead of spinning, says so once, and comes back by itself."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Raw(broker) as before:
        assert before.ask(HELLO, 3, ApiVersionsResponse), "it is let in"
        highest = before.sock.fileno() + 40
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        taken = []
        try:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(open(os.devnull))  # noqa: SIM115
            taken.pop().close()
            with caplog.at_level(logging.ERROR):
                knocking = socket.create_connection(("127.0.0.1", broker.listeners[0].port), timeout=10)
                knocking.settimeout(0.5)
                knocking.sendall(b"".join(write_request(HELLO, 3, 1, None)))
                with pytest.raises(TimeoutError):
                    knocking.recv(1)
                assert before.ask(HELLO, 3, ApiVersionsResponse), "who is here is served"
                said = [record.getMessage() for record in caplog.records if record.name == guests.__name__]
                assert said == ["nobody is let in: the limit of open files is reached"]
                assert "offline" not in caplog.text, "a checkpoint that could not be written is written later"
        finally:
            for each in taken:
                each.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        knocking.settimeout(10)
        assert knocking.recv(4), "and it comes back by itself"
        knocking.close()
