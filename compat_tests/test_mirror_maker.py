"""MirrorMaker 2 between Apache Kafka and the broker under test, both ways at once.

"far" is always Apache Kafka, "near" is the target: against `--target=apache-kafka` it mirrors between two of them.
"""

import time
from collections.abc import Iterator

import apache
import confluent_kafka
import confluent_kafka.admin
import jars
import pytest

from compat_tests.connect import VERSION, Worker, running
from compat_tests.records import PATIENCE_SECONDS, Record, admin, make_topic, new_name, read, write
from compat_tests.running import missing_tool

pytestmark = [pytest.mark.java, pytest.mark.slow]

CLIENT = f"MirrorMaker {VERSION}"
NOW_MS = int(time.time() * 1000)
GIVEN = [Record(f"v{n}", f"k{n}", n % 2, (("n", b"%d" % n),), NOW_MS + n) for n in range(400)]


class Pair:
    """Two clusters, the MirrorMaker between them, and the part of a topic's name that tells this run from others."""

    def __init__(self, far: str, near: str, worker: Worker, word: str) -> None:
        self.bootstrap = {"far": far, "near": near}
        self.worker, self.word = worker, word


def settings(far: str, near: str, word: str) -> dict[str, object]:
    given: dict[str, object] = {
        "clusters": "far, near",
        "far.bootstrap.servers": far,
        "near.bootstrap.servers": near,
        "far->near.enabled": "true",
        "near->far.enabled": "true",
        # Records arrive in transactions on one side, idempotently on the other.
        "near.exactly.once.source.support": "enabled",
        "topics": f"{word}.*",
        "groups": f"{word}.*",
        "sync.group.offsets.enabled": "true",
        "offset.lag.max": 0,
        "tasks.max": 2,
        "replication.factor": 1,
        # What tells equal offsets on both sides goes out with these; it must be said for each cluster.
        "far.offset.flush.interval.ms": 500,
        "near.offset.flush.interval.ms": 500,
    }
    intervals = ["refresh.topics", "refresh.groups", "sync.topic.configs", "sync.group.offsets", "emit.checkpoints"]
    given |= {f"{each}.interval.seconds": 1 for each in intervals}
    internal = ["checkpoints.topic", "heartbeats.topic", "offset-syncs.topic"]
    internal += ["offset.storage", "status.storage", "config.storage"]
    return given | {f"{each}.replication.factor": 1 for each in internal}


@pytest.fixture(scope="module")
def pair(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    word, folder = new_name("mirrored"), tmp_path_factory.mktemp("mirror")
    try:
        with apache.Kafka(folder / "far") as far:
            for each in (far.bootstrap, bootstrap):
                make_topic(
                    each, f"{word}.orders", config={"retention.ms": "87654321", "cleanup.policy": "compact,delete"}
                )
            files = {"mirror": settings(far.bootstrap, bootstrap, word)}
            with running("org.apache.kafka.connect.mirror.MirrorMaker", folder, **files) as worker:
                yield Pair(far.bootstrap, bootstrap, worker, word)
    except jars.Missing as missing:
        missing_tool(missing)


BOTH_WAYS = pytest.mark.parametrize(("here", "there"), [("far", "near"), ("near", "far")], ids=["to us", "from us"])


@pytest.mark.feature(CLIENT, "records")
@BOTH_WAYS
def test_records_arrive_whole_and_once(pair: Pair, here: str, there: str) -> None:
    half = len(GIVEN) // 2
    write(pair.bootstrap[here], f"{pair.word}.orders", GIVEN[:half])
    mirrored = f"{here}.{pair.word}.orders"
    pair.worker.until(f"{mirrored} is made", lambda: partitions(pair.bootstrap[there], mirrored) == 2)

    def arrived() -> list[tuple[object, ...]]:
        found = read(pair.bootstrap[there], mirrored)
        return [(each.partition, each.key, each.value, each.headers, each.timestamp_ms) for each in found]

    expected = [(each.partition, each.key, each.value, each.headers, each.timestamp_ms) for each in GIVEN]
    expected.sort(key=lambda each: each[0])
    pair.worker.until("the first half arrives", lambda: len(arrived()) >= half)
    write(
        pair.bootstrap[here], f"{pair.word}.orders", GIVEN[half:]
    )  # in a transaction of their own, where there are any
    pair.worker.until("the other half arrives", lambda: len(arrived()) >= len(GIVEN))
    assert arrived() == expected


@pytest.mark.feature(CLIENT, "topic settings and partitions")
@BOTH_WAYS
def test_settings_follow(pair: Pair, here: str, there: str) -> None:
    name = f"{pair.word}.orders"
    mirrored = f"{here}.{name}"
    pair.worker.until(
        "the settings it was made with", lambda: setting(pair.bootstrap[there], mirrored, "retention.ms") == "87654321"
    )
    assert setting(pair.bootstrap[there], mirrored, "cleanup.policy") == "compact,delete"

    alter(pair.bootstrap[here], name, "retention.ms", "12345678")
    pair.worker.until(
        "a setting altered later", lambda: setting(pair.bootstrap[there], mirrored, "retention.ms") == "12345678"
    )


@pytest.mark.feature(CLIENT, "offsets of groups")
@BOTH_WAYS
def test_offsets_of_groups_follow(pair: Pair, here: str, there: str) -> None:
    group, name = f"{pair.word}.group.{here}", f"{pair.word}.orders"
    mirrored = f"{here}.{name}"
    # By themselves: MirrorMaker has ten messages about offsets under way at most, and what it does not get to say of a
    # large transaction, it says with the next one.
    write(pair.bootstrap[here], name, [Record("last", "last", part, (), NOW_MS) for part in (0, 1)])
    given = read(pair.bootstrap[here], name)
    pair.worker.until("the last arrive", lambda: len(read(pair.bootstrap[there], mirrored)) == len(given))
    commit(pair.bootstrap[here], group, name, ends(given))  # all is read
    # The same place over there: behind the last record, whose offset depends on the transactions it came in.
    expected = ends(read(pair.bootstrap[there], mirrored))
    pair.worker.until("the offsets of the group", lambda: committed(pair.bootstrap[there], group, mirrored) == expected)


def ends(records: list[Record]) -> list[int]:
    return [max(each.offset for each in records if each.partition == part) + 1 for part in (0, 1)]


def partitions(bootstrap: str, topic: str) -> int:
    return len(admin(bootstrap).list_topics(timeout=PATIENCE_SECONDS).topics.get(topic, NOTHING).partitions)


NOTHING = confluent_kafka.admin.TopicMetadata()


def resource(topic: str) -> confluent_kafka.admin.ConfigResource:
    return confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ConfigResource.Type.TOPIC, topic)


def setting(bootstrap: str, topic: str, name: str) -> str:
    if not partitions(bootstrap, topic):
        return ""
    client = admin(bootstrap)
    (future,) = client.describe_configs([resource(topic)]).values()
    return str(future.result(PATIENCE_SECONDS)[name].value)


def alter(bootstrap: str, topic: str, name: str, value: str) -> None:
    client, asked = admin(bootstrap), resource(topic)
    operation = confluent_kafka.admin.AlterConfigOpType.SET
    asked.add_incremental_config(confluent_kafka.admin.ConfigEntry(name, value, incremental_operation=operation))
    (future,) = client.incremental_alter_configs([asked]).values()
    future.result(PATIENCE_SECONDS)


def consumer(bootstrap: str, group: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})


def commit(bootstrap: str, group: str, topic: str, offsets: list[int]) -> None:
    client = consumer(bootstrap, group)
    positions = [confluent_kafka.TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    client.commit(offsets=positions, asynchronous=False)
    client.close()


def committed(bootstrap: str, group: str, topic: str) -> list[int]:
    client = consumer(bootstrap, group)
    asked = [confluent_kafka.TopicPartition(topic, index) for index in (0, 1)]
    found = [each.offset for each in client.committed(asked, timeout=PATIENCE_SECONDS)]
    client.close()
    return found
