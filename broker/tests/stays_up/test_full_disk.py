"""A full disk: writes are refused, reads go on, and when there is room again everything is as before."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from posix_only import posix_only

from trilogue.broker.tests.stays_up.disks import fill, small_disk
from trilogue.broker.tests.stays_up.process import Client, Process, eventually, process
from trilogue.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from trilogue.wire.apis.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.errors import ErrorCode

pytestmark = posix_only("a small file system has to be mounted")

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


@contextlib.contextmanager
def on_small_disk(folder: Path, **settings: str) -> Iterator[tuple[Process, Path]]:
    """A broker, and the file that fills its disk."""
    with small_disk(folder / "data") as data, process(folder, **settings) as broker:
        yield broker, data / "other people's data"


def refused(client: Client, topic: str, size: int = 100_000) -> list[bytes]:
    """Produce until that is refused; what was taken."""
    taken = []
    for number in range(1000):
        value = b"%d" % number * size
        code = client.produce(topic, value[:size])
        if code:
            assert code == STORAGE
            return taken
        taken.append(value[:size])
    raise AssertionError("the disk was never full")


def test_produce_is_refused_reads_go_on_and_both_work_when_there_is_room(tmp_path: Path) -> None:
    with (
        on_small_disk(tmp_path, replica_high_watermark_checkpoint_interval_ms="100") as (broker, blocker),
        broker.client() as client,
    ):
        assert client.create("t") == NONE
        assert client.create("other") == NONE
        assert client.produce("other", b"before") == NONE
        blocker.write_bytes(bytes(14 << 20))
        taken = refused(client, "t")
        fill(blocker)

        assert [client.produce(topic, b"x" * 10_000) for topic in ("t", "other")] == [STORAGE, STORAGE]
        assert [client.values(topic) for topic in ("t", "other")] == [taken, [b"before"]]
        assert broker.log().count("cannot be written to for now") == 1

        blocker.unlink()
        assert [client.produce(topic, b"there is room") for topic in ("t", "other")] == [NONE, NONE]
        assert client.create("new") == NONE
        assert client.produce("new", b"too") == NONE
        everything = [[*taken, b"there is room"], [b"before", b"there is room"], [b"too"]]
        assert [client.values(topic) for topic in ("t", "other", "new")] == everything
        assert "goes offline" not in broker.log()
        assert "takes no more writes" not in broker.log()
        broker.restart()
        with broker.client() as again:
            assert [again.values(topic) for topic in ("t", "other", "new")] == everything
        assert "opened with repairs" not in broker.log(), "the end was clean"


def test_a_log_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    with on_small_disk(tmp_path) as (broker, blocker), broker.client() as client:
        assert client.create("t") == NONE
        assert client.produce("t", b"before") == NONE
        blocker.write_bytes(bytes((16 << 20) - 400_000))
        taken = refused(client, "t", 150_000)
        blocker.unlink()

        assert client.produce("t", b"after") == NONE
        assert client.values("t") == [b"before", *taken, b"after"]
        broker.kill()
        broker.start()
        with broker.client() as again:
            assert again.values("t") == [b"before", *taken, b"after"]


def test_changes_of_metadata_are_refused_and_nobody_is_hung_up_on(tmp_path: Path) -> None:
    alter = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.Resource(
                resource_type=2,
                resource_name="t",
                configs=[
                    IncrementalAlterConfigsRequest.Resource.Config(
                        name="retention.ms", config_operation=0, value="1" * 10
                    )
                ],
            )
        ]
    )
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.Topic(name="t", count=500, assignments=None)], timeout_ms=1000
    )
    delete = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)

    def told(client: Client) -> dict[str, int]:
        return {
            "create": client.create("wide", 500),
            "grow": client.ask(grow, 1, CreatePartitionsResponse).results[0].error_code,
            "alter": client.ask(alter, 1, IncrementalAlterConfigsResponse).responses[0].error_code,
            "delete": client.ask(delete, 1, DeleteTopicsResponse).responses[0].error_code,
        }

    with on_small_disk(tmp_path) as (broker, blocker), broker.client() as client:
        assert client.create("t") == NONE
        fill(blocker)
        for _ in range(2000):  # what SQLite has in hand is used up
            if client.ask(alter, 1, IncrementalAlterConfigsResponse).responses[0].error_code == STORAGE:
                break
        else:
            raise AssertionError("the disk was never full")
        before = told(client)
        identity = client.ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 1, InitProducerIdResponse
        )
        blocker.unlink()

        assert before == dict.fromkeys(["create", "grow", "alter", "delete"], STORAGE)
        assert identity.error_code in (NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert told(client) == dict.fromkeys(["create", "grow", "alter", "delete"], NONE)
        assert "a bug of ours" not in broker.log()


def test_what_retention_gives_up_makes_room(tmp_path: Path) -> None:
    with on_small_disk(tmp_path, log_retention_check_interval_ms="300") as (broker, blocker):
        with broker.client() as client:
            settings = {"retention_bytes": "1000000", "segment_bytes": "1048576", "file_delete_delay_ms": "100"}
            assert client.create("t", **settings) == NONE
            assert client.produce("t", b"first") == NONE
            for number in range(100):
                eventually(lambda number=number: client.produce("t", b"%d" % (number % 10) * 500_000) == NONE)
                if number == 10:
                    blocker.write_bytes(bytes(8 << 20))
        assert "goes offline" not in broker.log()


def test_a_full_disk_at_the_start_is_said_in_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "data") as data:
        fill(data / "other people's data")
        broker = Process(tmp_path)
        broker.launch()

        assert broker.wait() == 1
        (line,) = broker.log().splitlines()
        assert "disk full" in line
        assert str(data) in line

        (data / "other people's data").unlink()
        broker.start()
        assert broker.stop() == 0


def test_a_start_with_topics_on_a_full_disk_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    with on_small_disk(tmp_path) as (broker, blocker):
        with broker.client() as client:
            assert client.create("t") == NONE
            assert client.produce("t", b"kept") == NONE
        broker.kill()
        fill(blocker)
        broker.launch()

        eventually(lambda: broker.ended is not None or (broker.folder / "port").exists())
        if broker.ended is None:
            broker.kill()  # it could do without more room
        else:
            assert broker.ended == 1
            assert "disk full" in broker.log().splitlines()[-1]
            assert "Traceback" not in broker.log()
        blocker.unlink()
        broker.start()
        with broker.client() as client:
            assert client.values("t") == [b"kept"]


def test_a_stop_on_a_full_disk_ends_well_and_is_not_clean(tmp_path: Path) -> None:
    with on_small_disk(tmp_path) as (broker, blocker):
        with broker.client() as client:
            assert client.create("t") == NONE
            assert client.produce("t", b"kept") == NONE
            fill(blocker)
        broker.signal(signal.SIGTERM)

        assert broker.wait() == 0
        assert "Traceback" not in broker.log()
        blocker.unlink()
        broker.start()
        with broker.client() as client:
            assert client.values("t") == [b"kept"]
            assert client.produce("t", b"more") == NONE
