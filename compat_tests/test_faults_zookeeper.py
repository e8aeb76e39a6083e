"""ZooKeeper ends the sessions of brokers, and somebody writes rubbish into our nodes: the cluster goes on under a
producer and a reader, and nothing acknowledged is lost.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import confluent_kafka.admin
import pytest

from compat_tests.keeper import Keeper, end_session, keeper
from compat_tests.trial import ASK_SECONDS, PARTITIONS, TIMES, Loaded, trial

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("only_ours")]

AGAIN_SECONDS = 10.0
"""So soon a broker is registered anew."""


# -- sessions --------------------------------------------------------------------------------------


def make_topic(it: Loaded, name: str) -> None:
    """And see that every broker knows it."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": it.cluster.bootstrap})
    it.until(f"{name} is made", lambda: made(admin, name))
    for each in it.cluster.brokers.values():
        asked = confluent_kafka.admin.AdminClient({"bootstrap.servers": each.bootstrap})
        it.until(f"{each.folder.name} knows {name}", lambda asked=asked: name in asked.list_topics(timeout=3).topics)


def made(admin: confluent_kafka.admin.AdminClient, name: str) -> bool:
    new = confluent_kafka.admin.NewTopic(name, 1)
    try:
        admin.create_topics([new])[name].result(ASK_SECONDS)
    except confluent_kafka.KafkaException as error:
        return bool(error.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS)
    return True


def note(noted: list[tuple[int, int]], data: bytes, stat: object) -> None:
    said = json.loads(data)
    noted.append((said["controller_epoch"], said["leader_epoch"]))


def test_sessions_are_ended_by_force(tmp_path: Path) -> None:
    """Of a leader, and of the controller: they register anew, and hear of what happens from then on."""
    with trial(tmp_path) as it, keeper(it.cluster.zookeeper.address) as zookeeper:
        epochs: dict[int, list[tuple[int, int]]] = {each: [] for each in range(PARTITIONS)}
        for index, noted in epochs.items():
            zookeeper.DataWatch(f"/brokers/topics/t/partitions/{index}/state", partial(note, noted))
        for number in range(TIMES):
            for victim in (it.leader(), it.controller()):
                path = f"/brokers/ids/{victim}"
                before = zookeeper.exists(path)
                controller, epoch = it.controller(), int(zookeeper.get("/controller_epoch")[0])
                end_session(it.cluster.zookeeper.address, before.ephemeralOwner)
                it.until(
                    "it is registered anew",
                    lambda path=path, before=before: (now := zookeeper.exists(path)) and now.czxid > before.czxid,
                    AGAIN_SECONDS,
                )
                it.until("there is a controller", lambda: zookeeper.exists("/controller") is not None, AGAIN_SECONDS)
                assert int(zookeeper.get("/controller_epoch")[0]) == epoch + (victim == controller)
                make_topic(it, f"after-{number}-{victim}-{epoch}")
                it.writes_go_on()
                it.all_in_sync()
        for each in epochs.values():
            assert each == sorted(each), "no epoch goes back"
        assert it.history.errors == []


# -- rubbish ---------------------------------------------------------------------------------------

RUBBISH = {
    "/brokers/topics/t": b'{"version":3,"topic_id":',
    "/brokers/topics/t/partitions/0/state": b'{"version":1,"leader":"1","leader_epoch":[],"isr":null}',
    "/brokers/topics/t/partitions/1/state": b'{"version":77}',
    "/brokers/topics/bad": b"\xff\x00",
    "/brokers/ids/1": b"[]",
    "/brokers/ids/9": b"",
    "/brokers/ids/nine": b"{}",
    "/config/topics/t": b'{"version":1,"config":{"retention.ms":1}}',
    "/config/brokers/1": b"null",
    "/controller": b'{"version":2,"brokerid":"you"}',
    "/controller_epoch": b"one",
    "/latest_producer_id_block": b"1.5",
    "/changes": b"\xff",
}


def write(zookeeper: Keeper, nodes: Mapping[str, bytes]) -> None:
    for path, data in nodes.items():
        if zookeeper.exists(path):
            zookeeper.set(path, data)
        else:
            zookeeper.create(path, data, makepath=True)
    zookeeper.set("/changes", b"{}")  # which nobody has announced: everybody looks at everything


def not_understood(it: Loaded, broker: int) -> set[str]:
    log = (it.cluster.brokers[broker].folder / "broker.log").read_text()
    return {
        line.split("ERROR ")[1].partition(": what is there")[0]
        for line in log.splitlines()
        if "cannot be understood, and is left alone" in line
    }


def test_rubbish_in_zookeeper_is_said_and_left_alone(tmp_path: Path) -> None:
    read = {path for path in RUBBISH if path not in ("/changes", "/latest_producer_id_block")}
    with trial(tmp_path) as it, keeper(it.cluster.zookeeper.address) as zookeeper:
        good = {path: zookeeper.get(path)[0] for path in RUBBISH if zookeeper.exists(path)}
        write(zookeeper, RUBBISH)
        it.until("all have seen it", lambda: all(read <= not_understood(it, each) for each in (1, 2, 3)))
        it.writes_go_on()
        make_topic(it, "made-all-the-same")
        for path in ("/brokers/ids/9", "/brokers/ids/nine", "/brokers/topics/bad"):
            zookeeper.delete(path)

        # A leader dies: the state of its partitions is written anew, whatever somebody has put there.
        victim = it.leader()
        it.cluster.brokers[victim].kill()
        it.until("another leads", lambda: it.leader() not in (victim, -1))
        it.writes_go_on()

        # It starts, and finds rubbish: what it does not understand it does not serve, nor does it put it aside.
        if zookeeper.get("/controller")[0] == RUBBISH["/controller"]:
            write(zookeeper, {"/controller": good["/controller"]})
        broker = it.cluster.brokers[victim]
        broker.start()
        it.hung = victim  # and is not asked: it does not know the topic
        assert sorted(each.name for each in broker.data[0].glob("t-*")) == ["t-0", "t-1", "t-2"]
        it.writes_go_on()

        # Somebody puts things right.
        write(zookeeper, {path: data for path, data in good.items() if zookeeper.get(path)[0] == RUBBISH[path]})
        it.all_in_sync()
        it.hung = None
