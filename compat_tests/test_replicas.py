"""Kafka's dump tool reads the files of every replica, and finds the same in all of them."""

import subprocess
from pathlib import Path

import apache
import confluent_kafka
import confluent_kafka.admin
import pytest

from compat_tests.brokers import cluster

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("only_ours")]

SMALL_SEGMENTS = {"segment.bytes": str(1 << 20)}  # the least that Kafka allows
RECORDS, SIZE = 3000, 1000


def dump(folder: Path) -> list[str]:
    """What the tool says of all files there, but for their names."""
    files = sorted(each for each in folder.iterdir() if each.suffix in (".log", ".index", ".timeindex", ".snapshot"))
    command = apache.command(
        "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, files))
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    for trouble in ("Found", "corrupt", "mismatch", "Exception"):
        assert trouble not in done.stdout, done.stdout[-2000:]
    return [line for line in done.stdout.splitlines() if line.startswith(("baseOffset", "| offset", "producerId"))]


def test_kafka_reads_the_files_of_every_replica(tmp_path: Path) -> None:
    with cluster(tmp_path, {}) as several:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": several.bootstrap})
        admin.create_topics([confluent_kafka.admin.NewTopic("t", 1, 3, config=SMALL_SEGMENTS)])["t"].result(30)
        for codec in ("none", "zstd"):
            settings = {"bootstrap.servers": several.bootstrap, "transactional.id": codec, "compression.type": codec}
            producer = confluent_kafka.Producer(settings)
            producer.init_transactions(30)
            for ends in (producer.commit_transaction, producer.abort_transaction):
                producer.begin_transaction()
                for number in range(RECORDS // 4):
                    producer.produce("t", b"%d" % number * (SIZE // len(str(number))), key=b"%d" % number)
                    producer.poll(0)
                producer.flush(30)
                ends(30)
    dumps = [dump(tmp_path / str(number) / "data" / "t-0") for number in several.brokers]

    assert sum(line.startswith("| offset") for line in dumps[0]) == RECORDS + 4, "and four markers"
    assert dumps[0] == dumps[1] == dumps[2]
