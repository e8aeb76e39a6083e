"""The driver is killed again and again, wherever it is, and started again: no row is lost, none is there twice.

Python and its JVM die at once, as in a power failure that the page cache survives.  Both kinds of tables at a time,
with small files coming together all the while.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from trilogue.pipeline.examples.sending import NewTopic, Outgoing
from trilogue.pipeline.tests.conftest import QUICK_JVM
from trilogue.pipeline.tests.test_examples import read_all

pytestmark = [pytest.mark.slow, pytest.mark.java]

KILLS = int(os.environ.get("TRILOGUE_KILLS", "3"))
"""`make kills` has ten; each takes half a minute on two cores."""
RECORDS = 2000
"""Before each life, so that there is always something to be killed at."""
BAD_EVERY = 50
START_SECONDS = 240
END_SECONDS = 300

TOML = f"""
[pipeline]
name = "killed"
checkpoint = "checkpoint"
[source]
topics = ["killed"]
max_records = 400
[decode]
schema = "number BIGINT NOT NULL, day DATE NOT NULL"
[bad_records]
action = "dead-letter"
topic = "killed.dead"
[[steps]]
type = "derive"
columns = {{ at_partition = "_partition", at_offset = "_offset" }}
[[sinks]]
type = "parquet"
path = "parquet"
partition_by = ["day"]
compact = {{ files = 6 }}
[[sinks]]
type = "delta"
path = "delta"
[spark]
master = "local[2]"
[spark.conf]
"spark.driver.extraJavaOptions" = "{QUICK_JVM}"
"""


class Driver:
    def __init__(self, folder: Path, life: int, bootstrap: str) -> None:
        command = [str(Path(sys.executable).with_name("trilogue")), "pipeline", "run", str(folder / "killed.toml")]
        self.log = folder / f"life-{life}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, "--bootstrap", bootstrap], stdout=log, stderr=log, start_new_session=True
            )

    def await_a_batch(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while "rows: batch" not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def kill(self) -> bool:
        """Whether it was still at work."""
        alive = self.process.poll() is None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return alive


def records(first: int) -> list[Outgoing]:
    found = []
    for number in range(first, first + RECORDS):
        said = json.dumps({"number": number, "day": f"2026-01-0{1 + number % 3}"})
        found.append(Outgoing("killed", f"k{number}", "bad" if number % BAD_EVERY == 0 else said, 1_700_000_000_000))
    return found


def test_kills(ours, spark, tmp_path):
    topics = {"killed": NewTopic(2), "killed.dead": NewTopic(1)}
    chance = random.Random(20260101)
    (tmp_path / "killed.toml").write_text(TOML)
    kills = life = 0
    while kills < KILLS:
        assert life < 2 * KILLS, f"only {kills} of {life} drivers were still at work when they were to be killed"
        ours.fill(topics, records(life * RECORDS))
        driver = Driver(tmp_path, life, ours.bootstrap)
        try:
            driver.await_a_batch()
            time.sleep(chance.uniform(0, 2.5))
        finally:
            kills += driver.kill()
        life += 1
    (tmp_path / "killed.toml").write_text(TOML.replace("max_records = 400", "max_records = 5000"))
    driver = Driver(tmp_path, life, ours.bootstrap)
    try:
        assert driver.process.wait(END_SECONDS) == 0, driver.log.read_text()
    finally:
        driver.process.poll() is None and driver.kill()

    numbers = range(life * RECORDS)
    good = Counter(number for number in numbers if number % BAD_EVERY)
    for kind in ("parquet", "delta"):
        rows = spark.read.format(kind).load(str(tmp_path / kind)).collect()
        assert Counter(row.number for row in rows) == good, f"{kind}: lost or there twice"
        assert len({(row.at_partition, row.at_offset) for row in rows}) == len(rows)
    logs = "".join(path.read_text() for path in tmp_path.glob("life-*.log"))
    assert "small files are 1 now" in logs, "small files were to come together meanwhile"

    origins = Counter(origin(each.record) for each in read_all(ours, "killed.dead"))
    bad = {
        ("killed", each.partition, each.record.offset)
        for each in read_all(ours, "killed")
        if bytes(each.record.value) == b"bad"
    }
    assert set(origins) == bad, "dead letters are complete; a few may be there twice, and say so"
    assert len(bad) == len(numbers) - len(good)


def origin(record) -> tuple[str, int, int]:
    said = {name: bytes(value).decode() for name, value in record.headers}
    return said["trilogue.source.topic"], int(said["trilogue.source.partition"]), int(said["trilogue.source.offset"])
