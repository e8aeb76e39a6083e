"""`trilogue pipeline`, as a person runs it."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from trilogue.pipeline.tests.conftest import QUICK_JVM

COMMAND = [str(Path(sys.executable).with_name("trilogue")), "pipeline"]
WAIT_SECONDS = 240

TOML = f"""
[pipeline]
name = "forever"
checkpoint = "checkpoint"
trigger = "1 second"
[source]
topics = ["forever"]
[decode]
format = "text"
[[sinks]]
type = "parquet"
path = "table"
[spark]
master = "local[2]"
[spark.conf]
"spark.driver.extraJavaOptions" = "{QUICK_JVM}"
"""


def trilogue(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    said = {**os.environ, **environment}
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, env=said, timeout=WAIT_SECONDS)


def test_without_pyspark_it_says_how_to_install_it(tmp_path):
    (tmp_path / "p.toml").write_text(TOML)
    hidden = tmp_path / "pyspark"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('No module named pyspark', name='pyspark')")

    done = trilogue("run", tmp_path / "p.toml", PYTHONPATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "trilogue: `trilogue pipeline` needs PySpark: pip install 'trilogue[pipeline]'\n"


def test_a_file_that_is_wrong_is_one_line(tmp_path):
    (tmp_path / "p.toml").write_text(TOML + "[sinks]\n")
    done = trilogue("check", tmp_path / "p.toml")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"trilogue: {tmp_path}/p.toml: not TOML:")

    (tmp_path / "p.toml").write_text(TOML)
    done = trilogue("run", tmp_path / "p.toml", "--trigger", "soon")
    assert done.stderr.startswith(f"trilogue: {tmp_path}/p.toml: [pipeline]: `trigger`: 'soon' is not a number")


def test_pyspark_is_not_loaded_for_help_nor_for_redrive(ours, tmp_path):
    (tmp_path / "p.toml").write_text(TOML + '[bad_records]\naction = "dead-letter"\ntopic = "forever.dead"\n')
    ours.create("forever.dead")
    code = (
        "import sys; from trilogue.cli.main import main\n"
        f"main(['pipeline', 'redrive', {str(tmp_path / 'p.toml')!r}, '--bootstrap', {ours.bootstrap!r}, '--json'])\n"
        "assert not {'pyspark', 'py4j', 'trio'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_SECONDS)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"redriven": {}, "repeated": 0, "strange": 0}\n'


@pytest.mark.slow
@pytest.mark.java
def test_it_runs_until_it_is_asked_to_stop(ours, spark, tmp_path):
    (tmp_path / "p.toml").write_text(TOML)
    ours.put("forever", ["one", "two"])
    log = tmp_path / "log"
    with open(log, "wb") as out:
        words = ["run", str(tmp_path / "p.toml"), "--bootstrap", ours.bootstrap, "--metrics", "0"]
        process = subprocess.Popen([*COMMAND, *words], stdout=out, stderr=out)
    try:
        wait_for(process, log, "rows: batch 0, 2 rows")
        ours.put("forever", ["three"])
        wait_for(process, log, "rows: batch 1, 1 rows")
        (address,) = [line.split()[-1] for line in log.read_text().splitlines() if line.startswith("metrics at ")]
        with urllib.request.urlopen(address, timeout=10) as page:
            assert (
                'trilogue_pipeline_rows_total{pipeline="forever",query="rows"} 3' in page.read().decode().splitlines()
            )
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

    assert log.read_text().endswith("forever: 3 rows in 2 batches\n")
    rows = spark.read.parquet(str(tmp_path / "table")).collect()
    assert sorted(row.value for row in rows) == ["one", "three", "two"]


def wait_for(process, log: Path, text: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while text not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.java
def test_a_connector_that_cannot_be_had_is_named(has_java, tmp_path, monkeypatch):
    from trilogue.pipeline import jars
    from trilogue.pipeline.errors import PipelineError

    monkeypatch.setenv("TRILOGUE_CACHE", str(tmp_path))
    with pytest.raises(
        PipelineError, match=r"^cannot be had from Maven Central: org\.apache\.spark:spark-none_2\.13:9\.9"
    ):
        jars.resolve(["org.apache.spark:spark-none_2.13:9.9"])
