"""`trilogue start --zookeeper`: brokers that are processes, and what they say to each other through ZooKeeper."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.world import Address
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse

pytestmark = [pytest.mark.java, pytest.mark.slow]

COMMAND = [sys.executable, "-m", "trilogue.cli.main", "start", "--port", "0"]
SESSION_SECONDS = 3
PATIENCE = 20


class Process:
    """One broker."""

    def __init__(self, number, connect, folder, *words):
        self.number = number
        given = ["--node-id", str(number), "--zookeeper", connect, "--data", str(folder / f"data{number}")]
        given += ["--set", f"zookeeper.session.timeout.ms={SESSION_SECONDS * 1000}", *words]
        self.log = folder / f"log{number}"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*COMMAND, *given], stdout=subprocess.PIPE, stderr=log, text=True)

    def wait(self):
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.port = int(line.partition(";")[0].rpartition(":")[2])
        self.bootstrap = f"127.0.0.1:{self.port}"
        return self

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        self.process.communicate(timeout=30)

    def metadata(self):
        client = Client([Address("127.0.0.1", self.port)], Blocking())
        link = run(client.any())
        try:
            return run(link.call(MetadataRequest(topics=None), MetadataResponse))
        finally:
            client.close()


@contextmanager
def brokers(connect, folder, *numbers):
    with ExitStack() as ending:
        started = [Process(number, connect, folder) for number in numbers]
        for each in started:
            ending.callback(each.end)
        yield {each.number: each.wait() for each in started}


@pytest.fixture
def shell(zookeeper, tmp_path):
    """A person who looks into ZooKeeper."""
    client = KazooClient(zookeeper.address)
    client.start()
    client.chroot = f"/processes/{tmp_path.name}"
    yield client
    client.stop()
    client.close()


@pytest.fixture
def connect(zookeeper, tmp_path):
    return f"{zookeeper.address}/processes/{tmp_path.name}"


def soon(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.05)
    return found


def controller(shell):
    found = shell.exists("/controller") and shell.get("/controller")[0]
    return json.loads(found)["brokerid"] if found else None


def seen_by(broker):
    metadata = broker.metadata()
    return sorted(each.node_id for each in metadata.brokers), metadata.controller_id


def test_three_brokers_see_each_other_and_the_controller_moves_when_it_is_killed(connect, shell, tmp_path):
    with brokers(connect, tmp_path, 1, 2, 3) as running:
        first = controller(shell)
        assert first in running
        for each in running.values():
            soon(lambda each=each: seen_by(each) == ([1, 2, 3], first))
        epochs = [int(shell.get("/controller_epoch")[0])]
        broker_epoch = shell.exists(f"/brokers/ids/{first}").czxid

        running[first].send(signal.SIGKILL)
        killed = time.monotonic()
        second = soon(lambda: (found := controller(shell)) not in (None, first) and found)
        assert time.monotonic() - killed < SESSION_SECONDS + 2
        epochs.append(int(shell.get("/controller_epoch")[0]))
        others = sorted({1, 2, 3} - {first})
        for number in others:
            soon(lambda number=number: seen_by(running[number]) == (others, second))

        running[first].end()
        with brokers(connect, tmp_path, first) as again:
            for each in (running[others[0]], running[others[1]], again[first]):
                soon(lambda each=each: seen_by(each) == ([1, 2, 3], second))
            assert shell.exists(f"/brokers/ids/{first}").czxid > broker_epoch
            running[second].send(signal.SIGKILL)
            third = soon(lambda: (found := controller(shell)) not in (None, second) and found)
            epochs.append(int(shell.get("/controller_epoch")[0]))
            assert third != second
        assert epochs == [1, 2, 3]
        running[second].end()


def test_a_broker_that_was_killed_and_starts_at_once_waits_for_its_old_session_to_end(connect, shell, tmp_path):
    with brokers(connect, tmp_path, 1) as running:
        running[1].send(signal.SIGKILL)
        running[1].end()
        before = shell.exists("/brokers/ids/1").czxid
        with brokers(connect, tmp_path, 1) as again:
            assert shell.exists("/brokers/ids/1").czxid > before
            soon(lambda: seen_by(again[1]) == ([1], 1))
            assert int(shell.get("/controller_epoch")[0]) == 2


def test_a_controller_that_was_frozen_comes_back_as_one_of_the_others(connect, shell, tmp_path):
    with brokers(connect, tmp_path, 1, 2) as running:
        first = controller(shell)
        other = 3 - first
        before = shell.exists(f"/brokers/ids/{first}").czxid
        running[first].send(signal.SIGSTOP)
        soon(lambda: controller(shell) == other)
        soon(lambda: seen_by(running[other]) == ([other], other))
        running[first].send(signal.SIGCONT)
        for number in (first, other):
            soon(lambda number=number: seen_by(running[number]) == ([1, 2], other))
        assert shell.exists(f"/brokers/ids/{first}").czxid > before
        assert int(shell.get("/controller_epoch")[0]) == 2


def test_one_broker_does_everything_and_finds_it_again(connect, tmp_path):
    with brokers(connect, tmp_path, 1) as running:
        bootstrap = running[1].bootstrap
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        admin.create_topics([NewTopic("orders", 2, 1, topic_configs={"retention.ms": "1234567"})])
        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")
        producer.init_transactions()
        for number in range(3):
            producer.begin_transaction()
            producer.send("orders", str(number).encode(), partition=0)
            producer.abort_transaction() if number == 1 else producer.commit_transaction()
        producer.close()
        assert read(bootstrap, "readers", 2) == [b"0", b"2"]
        admin.create_topics([NewTopic("short", 1, 1)])
        admin.delete_topics(["short"])
        admin.close()
    with brokers(connect, tmp_path, 1) as running:
        bootstrap = running[1].bootstrap
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        producer.send("orders", b"3", partition=0).get(10)
        producer.close()
        assert read(bootstrap, "readers", 1) == [b"3"], "the group goes on where it was"
        topics = {each.name: len(each.partitions) for each in running[1].metadata().topics}
        assert {name: count for name, count in topics.items() if not name.startswith("__")} == {"orders": 2}


def read(bootstrap, group, count):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
    found = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < deadline, found
        found += [record.value for records in consumer.poll(500).values() for record in records]
    consumer.commit()
    consumer.close()
    return found


def test_zookeeper_may_go_and_come_back(own_zookeeper, tmp_path):
    """Clients read and write meanwhile; nothing new can be made until it is there again."""
    with brokers(f"{own_zookeeper.address}/k", tmp_path, 1) as running:
        bootstrap = running[1].bootstrap
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        admin.create_topics([NewTopic("orders", 1, 1)])
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        producer.send("orders", b"before").get(10)
        own_zookeeper.kill()
        for at in range(3 * SESSION_SECONDS):
            producer.send("orders", str(at).encode()).get(10)
            time.sleep(1)
        own_zookeeper.start()

        def made():
            try:
                admin.create_topics([NewTopic("later", 1, 1)])
            except Exception as error:
                return "TopicAlreadyExists" in repr(error)
            return True

        soon(made)
        producer.send("later", b"after").get(10)
        producer.send("orders", b"after").get(10)
        producer.close()
        admin.close()
        assert running[1].process.poll() is None


def test_it_ends_though_zookeeper_does_not_answer(own_zookeeper, tmp_path):
    with brokers(own_zookeeper.address, tmp_path, 1) as running:
        own_zookeeper.freeze()
        running[1].process.terminate()
        assert running[1].process.wait(10) == 0


def test_it_ends_while_it_still_waits_for_its_place(own_zookeeper, tmp_path):
    with brokers(own_zookeeper.address, tmp_path, 1) as running:
        running[1].send(signal.SIGKILL)
        running[1].end()
    again = Process(1, own_zookeeper.address, tmp_path)
    try:
        soon(lambda: "still registered" in again.log.read_text())
        own_zookeeper.freeze()
        again.process.terminate()
        assert again.process.wait(10) == 0
    finally:
        again.process.kill()
        again.end()


# -- what does not start ---------------------------------------------------------------------------


def attempt(*words):
    began = time.monotonic()
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=30)
    assert time.monotonic() - began < 15
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    return done.stderr.removeprefix("trilogue: ").rstrip()


def test_another_broker_has_our_id(connect, tmp_path):
    with brokers(connect, tmp_path, 1) as running:
        assert attempt("--zookeeper", connect, "--data", str(tmp_path / "other")) == (
            f"another broker has node id 1, at {running[1].bootstrap}: choose another with --node-id"
        )


def test_data_of_another_cluster_is_refused(zookeeper, connect, tmp_path):
    with brokers(connect, tmp_path, 1):
        pass
    data = str(tmp_path / "data1")
    elsewhere = f"{zookeeper.address}/elsewhere/{tmp_path.name}"
    assert attempt("--zookeeper", elsewhere, "--data", data).startswith(f"there is no /elsewhere/{tmp_path.name} in ")
    with brokers(elsewhere, tmp_path, 2):
        pass
    assert "belongs to node 1 of cluster" in attempt("--zookeeper", elsewhere, "--data", data)


HOW = "write HOST:PORT[,HOST:PORT][/PATH]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "--zookeeper 127.0.0.1:1",
            "ZooKeeper at 127.0.0.1:1 does not answer within 10 s: is zookeeper.connect right?",
        ),
        ("--zookeeper h:x", f"zookeeper.connect: 'h:x' is no address: {HOW}"),
        ("--zookeeper h:2181/a//b", f"zookeeper.connect: '/a//b' is no path of ZooKeeper's: {HOW}"),
        (
            "--zookeeper h:1 --set zookeeper.set.acl=true",
            "zookeeper.set.acl needs trilogue.zookeeper.digest, or TLS and zookeeper.ssl.keystore.location",
        ),
        (
            "--zookeeper h:1 --set zookeeper.ssl.client.enable=true --set zookeeper.ssl.truststore.type=JKS",
            "zookeeper.ssl.truststore.type: only PEM files can be read, not JKS",
        ),
        (
            "--zookeeper h:1 --ephemeral",
            "--ephemeral keeps nothing, and ZooKeeper would: choose a directory with --data",
        ),
        ("--node-id -1", "--node-id -1: choose 0 or more"),
    ],
)
def test_why_it_does_not_start(words, said, tmp_path):
    assert fnmatchcase(attempt(*words.split(), "--data", str(tmp_path / "data")), said.replace("[", "[[]"))


def test_kazoo_is_only_needed_for_zookeeper(tmp_path):
    (tmp_path / "kazoo.py").write_text("raise ImportError('not here')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    words = ["--zookeeper", "127.0.0.1:1", "--data", str(tmp_path / "data")]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=30, env=environment)
    assert done.stderr == "trilogue: ZooKeeper needs kazoo, which is not installed: pip install 'trilogue[zookeeper]'\n"
    assert done.returncode == 1
    code = "import sys, trilogue.broker.server; print([name for name in sys.modules if 'kazoo' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
