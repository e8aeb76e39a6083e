"""The data is removed under a running broker: nobody is told for long that it keeps what he sends."""

import shutil
import signal
from pathlib import Path

import pytest
from posix_only import posix_only

from trilogue.broker.tests.stays_up.process import Client, Process, eventually, process
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from trilogue.wire.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from trilogue.wire.errors import ErrorCode

pytestmark = posix_only("open files cannot be removed elsewhere")

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
SOON_SECONDS = 4.0
"""Two, and as many again for a machine that does much else."""


@pytest.mark.parametrize("replaced", ["nothing", "an empty folder", "a copy"])
def test_without_its_data_directory_the_broker_ends(tmp_path: Path, replaced: str) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("t") == NONE
        assert client.produce("t", b"x") == NONE
        if replaced == "a copy":
            shutil.copytree(broker.data, tmp_path / "copy")
        shutil.rmtree(broker.data)
        if replaced == "an empty folder":
            broker.data.mkdir()
        elif replaced == "a copy":
            (tmp_path / "copy").rename(broker.data)

        assert broker.wait(SOON_SECONDS) == 1
        assert (
            broker.log()
            .splitlines()[-1]
            .endswith(
                "the broker has ended, for no data directory works any more: "
                f"[Errno 2] it was removed under us: '{broker.data}'"
            )
        )
        assert "Traceback" not in broker.log()
        if replaced == "a copy":
            assert (broker.data / ".lock").exists(), "it is not ours, and may be another's"
            broker.start()
            with broker.client() as again:
                assert again.values("t") == [b"x"]


@pytest.mark.parametrize("what", ["the folder", "the log", "the folder, and made anew"])
def test_without_its_files_a_partition_takes_nothing_and_the_others_go_on(tmp_path: Path, what: str) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        for topic in ("t", "other"):
            assert client.create(topic) == NONE
            assert client.produce(topic, b"x") == NONE
        if what == "the log":
            (broker.data / "t-0" / f"{0:020}.log").unlink()
        else:
            shutil.rmtree(broker.data / "t-0")
        if what == "the folder, and made anew":
            (broker.data / "t-0").mkdir()

        eventually(lambda: client.produce("t", b"y") == STORAGE, SOON_SECONDS)
        assert client.produce("other", b"y") == NONE
        delete(client, "t")
        assert client.create("t") == NONE
        assert client.produce("t", b"anew") == NONE
        assert client.values("t") == [b"anew"]


def delete(client: Client, topic: str) -> None:
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000)
    assert client.ask(request, 1, DeleteTopicsResponse).responses[0].error_code == NONE


def test_without_its_metadata_the_broker_ends(tmp_path: Path) -> None:
    with process(tmp_path) as broker:
        for file in broker.data.glob("metadata.sqlite*"):
            file.unlink()

        assert broker.wait(SOON_SECONDS) == 1
        assert broker.log().splitlines()[-1].endswith(f"metadata.sqlite was removed under us: '{broker.data}'")


def test_a_lock_that_somebody_removes_is_made_anew(tmp_path: Path) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        (broker.data / ".lock").unlink()
        eventually((broker.data / ".lock").exists, SOON_SECONDS)

        second = Process(tmp_path / "second", f"--data={broker.data}")
        second.launch()
        assert second.wait() == 1
        assert "is in use by another broker" in second.log()
        assert client.create("t") == NONE
        assert client.produce("t", b"x") == NONE
        assert broker.stop() == 0
        assert not (broker.data / ".lock").exists()


def test_a_broker_that_lost_its_lock_to_another_ends(tmp_path: Path) -> None:
    with process(tmp_path) as broker:
        broker.signal(signal.SIGSTOP)
        (broker.data / ".lock").unlink()
        second = Process(tmp_path / "second", f"--data={broker.data}")
        second.start()
        try:
            broker.signal(signal.SIGCONT)
            assert broker.wait(SOON_SECONDS) == 1
            assert "another broker has it, for our lock was removed" in broker.log()
            with second.client() as client:
                assert client.create("t") == NONE
        finally:
            assert second.stop() == 0


def test_a_directory_that_is_gone_is_described_as_failed(tmp_path: Path) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("t") == NONE
        shutil.rmtree(broker.data)

        (answer,) = client.ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse).results
        assert (answer.log_dir, answer.error_code, answer.topics) == (str(broker.data), STORAGE, [])


def test_a_topic_is_not_made_where_there_is_no_directory_any_more(tmp_path: Path) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        client.api_versions()
        shutil.rmtree(broker.data)

        assert client.create("t") == STORAGE
        assert broker.wait(SOON_SECONDS) == 1
