"""What signals do: SIGTERM, SIGINT and SIGHUP end the broker soon and well, SIGUSR1 has it say what it is doing."""

import os
import signal
import time
from pathlib import Path

import pytest
from posix_only import posix_only

from trilogue.broker.tests.stays_up.process import NOW_MS, Process, eventually, process
from trilogue.wire.errors import ErrorCode
from trilogue.wire.records import Record, build

pytestmark = posix_only("there are no such signals elsewhere")

NONE = ErrorCode.NONE
SOON_SECONDS = 1.0
ENDING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_ends_soon_and_well(tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("t") == NONE
            assert client.produce("t", b"x") == NONE
        broker.signal(number)

        assert broker.wait() == 0
        assert (broker.data / ".kafka_cleanshutdown").exists()
        assert broker.log().count("\n") == 1, "there is nothing to say"


def test_nohup_is_respected(tmp_path: Path) -> None:
    broker = Process(tmp_path)
    broker.start(before=("nohup",))
    try:
        broker.signal(signal.SIGHUP)
        with broker.client() as client:
            client.api_versions()
            time.sleep(0.5)
            client.api_versions()
    finally:
        assert broker.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_compaction_is_interrupted_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path, log_cleaner_backoff_ms="100000000") as broker:
        with broker.client() as client:
            settings = {"cleanup_policy": "compact", "segment_bytes": "1048576", "min_cleanable_dirty_ratio": "0"}
            assert client.create("t", **settings) == NONE
            for turn in range(40):
                records = [Record(each, NOW_MS, b"%d" % (turn * 20_000 + each), b"v") for each in range(20_000)]
                assert client.produce_batch("t", bytes(build(records))) == NONE
        before = files(broker)
        broker.restart_with(log_cleaner_backoff_ms="100")
        eventually(lambda: cleaned(broker))
        broker.signal(number)
        begun = time.monotonic()

        assert broker.wait() == 0
        assert time.monotonic() - begun < SOON_SECONDS + broker_is_slow()
        assert files(broker) == before
        assert (broker.data / ".kafka_cleanshutdown").exists()
        broker.start()
        with broker.client() as client:
            assert client.produce("t", b"more", key=b"k") == NONE


def files(broker: Process) -> dict[str, int]:
    """The parts of the log, and those that a compaction has begun."""
    found = (broker.data / "t-0").iterdir()
    return {each.name: each.stat().st_size for each in found if each.name.endswith((".log", ".cleaned", ".deleted"))}


def cleaned(broker: Process) -> bool:
    return any((broker.data / "t-0").glob("*.cleaned"))


def broker_is_slow() -> float:
    """Other processes share our cores: more to do than cores is not the broker's fault."""
    return float(os.getloadavg()[0] > (os.cpu_count() or 1))


def test_says_what_everybody_is_doing_and_goes_on(tmp_path: Path) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        client.api_versions()
        for times in (1, 2):
            broker.signal(signal.SIGUSR1)
            eventually(lambda times=times: broker.log().count("what everybody is doing") == times)
        client.api_versions()

        said = broker.log()
        for part in ("task trilogue.broker.server.supervised", "server.py", "every", "thread watchdog"):
            assert part in said


def test_a_question_before_the_start_is_over_does_not_kill(tmp_path: Path) -> None:
    broker = Process(tmp_path)
    broker.launch()
    port_file = broker.folder / "port"
    try:
        eventually(lambda: (broker.data / ".lock").exists())
        while not port_file.exists():
            assert broker.ended is None
            broker.signal(signal.SIGUSR1)
            time.sleep(0.01)
    finally:
        assert broker.stop() == 0
