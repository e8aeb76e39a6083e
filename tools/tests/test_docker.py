"""What docker/ says, as far as no engine is needed: the command a container runs, and what an image is made of."""

import importlib.util
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from socket import create_server

import pytest

from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.world import Address

ROOT = Path(__file__).resolve().parents[2]


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docker" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


environment = loaded("environment")
entrypoint = loaded("entrypoint")
START = ["trilogue", "start", "--data=/data"]
TWO_DOORS = [*START, "--listen=:9092", "--listen=:19092"]


@pytest.mark.parametrize(
    ("environment", "arguments", "expected"),
    [
        ({}, [], [*TWO_DOORS, "--advertise=localhost:9092"]),
        (
            {"TRILOGUE_ADVERTISE": "example.org:1"},
            ["--verbose"],
            [*TWO_DOORS, "--advertise=example.org:1", "--verbose"],
        ),
        (
            {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_JMX_PORT": "1", "PATH": "/bin"},
            [],
            [*TWO_DOORS, "--advertise=localhost:9092", "--set=num.partitions=3"],
        ),
        ({"KAFKA_LISTENERS": "PLAINTEXT://:1"}, [], [*START, "--set=listeners=PLAINTEXT://:1"]),
        ({"KAFKA_NUM_PARTITIONS": "3"}, ["topic", "list"], ["trilogue", "topic", "list"]),
    ],
)
def test_what_a_container_runs(environment, arguments, expected):
    assert entrypoint.command(environment, arguments)[0] == expected


def test_names_of_settings_have_dots_underscores_and_hyphens():
    assert environment.setting("KAFKA_A_B__C___D") == "a.b_c-d"
    assert environment.setting("KAFKA_CFG_NODE_ID") == "node.id"


def test_an_address_is_taken_from_a_file_when_its_line_is_whole(tmp_path, monkeypatch):
    place = tmp_path / "address"
    steps = iter(["localhost:1", "localhost:1234\n"])
    monkeypatch.setattr(entrypoint.time, "sleep", lambda _: place.write_text(next(steps)))
    assert entrypoint.told_by(place) == "localhost:1234"


def test_every_folder_of_the_package_gets_into_an_image():
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packages = {path.name for path in (ROOT / "src" / "trilogue").iterdir() if path.is_symlink()}
    assert packages <= let_through
    assert {"src", "docker", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"} <= let_through


# -- other images' words ---------------------------------------------------------------------------

APACHE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://:{one},CONTROLLER://localhost:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:{one}",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_NUM_PARTITIONS": "3",
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
}
CONFLUENT = {
    "KAFKA_BROKER_ID": "1",
    "KAFKA_ZOOKEEPER_CONNECT": "{zookeeper}",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:{two},PLAINTEXT_HOST://localhost:{one}",
    "KAFKA_METRIC_REPORTERS": "io.confluent.metrics.reporter.ConfluentMetricsReporter",
    "KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_CONFLUENT_SCHEMA_REGISTRY_URL": "http://schema-registry:8081",
    "KAFKA_JMX_PORT": "9101",
    "CONFLUENT_METRICS_ENABLE": "true",
    "CONFLUENT_SUPPORT_CUSTOMER_ID": "anonymous",
}
BITNAMI = {
    "KAFKA_CFG_NODE_ID": "0",
    "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
    "KAFKA_CFG_LISTENERS": "PLAINTEXT://:{one},CONTROLLER://:9093",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_KRAFT_CLUSTER_ID": "LelM2dIFQkiUFvXCEcqRWA",
    "KAFKA_HEAP_OPTS": "-Xmx512m",
    "KAFKA_ENABLE_KRAFT": "yes",
    "ALLOW_PLAINTEXT_LISTENER": "yes",
    "BITNAMI_DEBUG": "false",
}
WURSTMEISTER = {
    "KAFKA_ADVERTISED_HOST_NAME": "localhost",
    "KAFKA_ADVERTISED_PORT": "{one}",
    "KAFKA_ZOOKEEPER_CONNECT": "{zookeeper}",
    "KAFKA_CREATE_TOPICS": "orders:3:1,state:1:1:compact",
    "KAFKA_LOG_RETENTION_MS": "600000",
    "HOSTNAME_COMMAND": "hostname -i",
}
REDPANDA = [
    *("redpanda", "start", "--smp", "1", "--memory", "1G", "--overprovisioned", "--node-id", "0"),
    *("--mode", "dev-container", "--check=false", "--pandaproxy-addr", "0.0.0.0:8082"),
    *("--kafka-addr", "internal://0.0.0.0:{two},external://0.0.0.0:{one}"),
    *("--advertise-kafka-addr", "internal://redpanda:{two},external://localhost:{one}"),
    *("--set", "redpanda.auto_create_topics_enabled=false"),
]


def free_ports(count):
    with_them = [create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in with_them]
    for each in with_them:
        each.close()
    return ports


@pytest.fixture
def started(tmp_path, monkeypatch):
    """What a container would be, with its data and its doors elsewhere; its first line, and what it is told besides."""

    @contextmanager
    def run_with(variables, arguments=(), zookeeper="none"):
        one, two, inside = free_ports(3)
        monkeypatch.setattr(environment, "INSIDE", inside)
        said = {
            name: value.format(one=one, two=two, zookeeper=f"{zookeeper}/{tmp_path.name}")
            for name, value in variables.items()
        }
        words, unused = entrypoint.command(said, [each.format(one=one, two=two) for each in arguments])
        words = [sys.executable, "-m", *words, f"--data={tmp_path}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                line = process.stdout.readline()
                assert line, process.communicate()
                client = Client([Address("127.0.0.1", one)], Blocking())
                found = run(client.persist(lambda: client.metadata(None)))
                client.close()
                yield found, unused, one
            finally:
                process.terminate()
                process.communicate(timeout=30)

    return run_with


def told(metadata):
    return [(each.node_id, each.host, each.port) for each in metadata.brokers]


def test_apache_kafkas_image(started):
    with started(APACHE) as (found, unused, port):
        assert told(found) == [(1, "localhost", port)]
        assert found.cluster_id == "4L6g3nShT-eMCtK--X86sw"
        assert unused == []


@pytest.mark.java
def test_confluents_image(started, zookeeper):
    with started(CONFLUENT, zookeeper=zookeeper.address) as (found, unused, port):
        assert told(found) == [(1, "localhost", port)]
        assert unused == [
            "KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR",
            "KAFKA_CONFLUENT_SCHEMA_REGISTRY_URL",
            "KAFKA_JMX_PORT",
            "CONFLUENT_METRICS_ENABLE",
            "CONFLUENT_SUPPORT_CUSTOMER_ID",
        ]


def test_bitnamis_image(started):
    with started(BITNAMI) as (found, unused, _):
        assert found.brokers[0].node_id == 0
        assert found.cluster_id == "LelM2dIFQkiUFvXCEcqRWA"
        assert unused == ["KAFKA_ENABLE_KRAFT", "KAFKA_HEAP_OPTS", "ALLOW_PLAINTEXT_LISTENER", "BITNAMI_DEBUG"]


@pytest.mark.java
def test_wurstmeisters_image(started, zookeeper):
    with started(WURSTMEISTER, zookeeper=zookeeper.address) as (found, unused, port):
        assert [(host, where) for _, host, where in told(found)] == [("localhost", port)]
        assert {each.name: len(each.partitions) for each in found.topics} == {"orders": 3, "state": 1}
        assert unused == ["HOSTNAME_COMMAND"]


def test_redpandas_flags(started):
    with started({}, REDPANDA) as (found, unused, port):
        assert told(found) == [(0, "localhost", port)]
        assert unused == [
            "--smp 1",
            "--memory 1G",
            "--overprovisioned",
            "--mode dev-container",
            "--check false",
            "--pandaproxy-addr 0.0.0.0:8082",
        ]
    words, _ = entrypoint.command({}, REDPANDA)
    assert "--set=auto.create.topics.enable=false" in words


@pytest.mark.parametrize(
    ("variables", "arguments", "name"),
    [
        ({"KAFKA_CLIENT_USERS": "me"}, [], "KAFKA_CLIENT_USERS"),
        ({"KAFKA_CLIENT_PASSWORDS": "me"}, [], "KAFKA_CLIENT_PASSWORDS"),
        ({"KAFKA_OPTS": "-Djava.security.auth.login.config=/jaas.conf"}, [], "KAFKA_OPTS"),
        ({}, ["redpanda", "start", "--set", "redpanda.enable_sasl=true"], "--set redpanda.enable_sasl=true"),
    ],
)
def test_passwords_that_nobody_would_ask_for_are_refused(variables, arguments, name):
    with pytest.raises(environment.Refused) as refused:
        entrypoint.command(variables, arguments)
    assert str(refused.value) == f"{name} would have no effect, and the broker would be open to all: leave it out"


def test_what_kubernetes_says_of_a_service_called_kafka_is_no_port():
    said = {"KAFKA_ADVERTISED_HOST_NAME": "here", "KAFKA_PORT": "tcp://10.0.0.1:9092", "KAFKA_SERVICE_HOST": "10.0.0.1"}
    found = environment.understand(said, lambda name: False)
    assert found.settings["advertised.listeners"] == "PLAINTEXT://here:9092"
    assert found.unused == ["KAFKA_SERVICE_HOST"]


def test_a_door_inside_is_not_added_where_they_have_one():
    said = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:19092"}
    found = environment.understand(said, lambda name: True)
    assert found.settings == {
        "advertised.listeners": "PLAINTEXT://kafka:19092",
        "listeners": "PLAINTEXT://:19092",
    }
