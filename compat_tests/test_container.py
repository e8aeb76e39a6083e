"""Our image: clients outside and inside of its network, its health, a clean stop, data that outlives a container."""

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import apache
import docker
import kafka
import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from compat_tests.containers import ROOT, Trilogue
from compat_tests.records import (
    Record,
    make_topic,
    new_name,
    new_topic,
    numbered,
    placed,
    read,
    values,
    wait_until,
    write,
)

pytestmark = pytest.mark.slow

HEALTHY_SECONDS = 30


@pytest.fixture(autouse=True)
def only_ours(target: str) -> None:
    if target == "apache-kafka":
        pytest.skip("it is our image that is looked at here")


@pytest.fixture(scope="module")
def network(engine: docker.DockerClient) -> Iterator[Network]:
    with Network() as network:
        yield network


@pytest.fixture(scope="module")
def broker(image: str, network: Network) -> Iterator[Trilogue]:
    with Trilogue(image, network, KAFKA_NUM_PARTITIONS="3") as broker:
        yield broker


def test_a_client_outside_comes_through_the_mapped_port_and_stays_there(broker: Trilogue) -> None:
    port = int(broker.bootstrap.rpartition(":")[2])
    assert port != 9092, "the port has not been mapped"
    client = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    told = {(each["host"], each["port"]) for each in client.describe_cluster()["brokers"]}
    client.close()
    assert told == {("localhost", port)}

    topic = new_topic(broker.bootstrap, "outside")
    records = numbered(0, 0, 100) + numbered(1, 0, 100)
    write(broker.bootstrap, topic, records)
    assert values(read(broker.bootstrap, topic)) == values(records)


INSIDE = """
import json, sys
import kafka
bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
told = [[each["host"], each["port"]] for each in admin.describe_cluster()["brokers"]]
consumer = kafka.KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id="inside", auto_offset_reset="earliest")
found = []
while len(found) < count:
    found += [each.value.decode() for batch in consumer.poll(1000).values() for each in batch]
producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
for value in found:
    producer.send(topic + "-back", value.upper().encode(), partition=0).get(30)
producer.close()
consumer.close()
admin.close()
print(json.dumps({"told": told, "found": sorted(found)}))
"""


def test_a_client_in_a_second_container_of_the_network_is_served_too(
    broker: Trilogue, image: str, network: Network
) -> None:
    topic = new_topic(broker.bootstrap, "inside")
    make_topic(broker.bootstrap, f"{topic}-back", partitions=1)
    records = numbered(0, 0, 50) + numbered(1, 0, 50)
    write(broker.bootstrap, topic, records)

    # Our image for its Python, and the client as pip installed it here.
    container = DockerContainer(image, network=network, entrypoint=["python3", "-c", INSIDE])
    container.with_command([broker.inside, topic, str(len(records))]).with_envs(PYTHONPATH="/client")
    container.with_volume_mapping(Path(kafka.__file__).parent, "/client/kafka")
    with container:
        code = container.wait()
        said, complaints = container.get_logs()
    assert code == 0, complaints.decode()
    answer = json.loads(said)

    assert answer["found"] == values(records)
    ((host, port),) = answer["told"]
    assert port == 19092
    assert host == address(broker, network), "told another address than the one it came in by"
    assert sorted(values(read(broker.bootstrap, f"{topic}-back", 1))) == [value.upper() for value in values(records)]


def address(broker: Trilogue, network: Network) -> str:
    wrapped = broker.container.get_wrapped_container()
    wrapped.reload()
    return str(wrapped.attrs["NetworkSettings"]["Networks"][network.name]["IPAddress"])


def test_the_health_check_turns_healthy(broker: Trilogue) -> None:
    wrapped = broker.container.get_wrapped_container()

    def health() -> str:
        wrapped.reload()
        return str(wrapped.attrs["State"]["Health"]["Status"])

    wait_until("the container is healthy", lambda: health() == "healthy", HEALTHY_SECONDS)


def test_the_command_line_inside_and_settings_from_the_environment(broker: Trilogue) -> None:
    name = new_name("made-inside")
    broker.run("trilogue", "topic", "create", name)
    (described,) = json.loads(broker.run("trilogue", "topic", "describe", name, "--json"))
    assert len(described["partitions"]) == 3, described
    assert broker.run("id", "--user").strip() == "1000"


def test_sigterm_stops_it_cleanly_and_a_volume_outlives_it(
    engine: docker.DockerClient, image: str, network: Network
) -> None:
    volume = engine.volumes.create(f"trilogue-{uuid.uuid4().hex[:8]}")
    records = placed(Record(f"v{number}", f"k{number}", timestamp_ms=10**12 + number) for number in range(100))
    try:
        with Trilogue(image, network, volume.name) as first:
            topic = new_topic(first.bootstrap, "kept", 1, {"retention.ms": "-1"})
            write(first.bootstrap, topic, records)
            begun = time.monotonic()
            first.container.get_wrapped_container().stop(timeout=30)  # SIGTERM; SIGKILL only after 30 seconds
            assert first.container.wait() == 0, first.log()
            assert time.monotonic() - begun < 25, "it was killed, not stopped"
        with Trilogue(image, network, volume.name) as second:
            assert read(second.bootstrap, topic, 1) == records
    finally:
        volume.remove()


def test_the_compose_file_brings_a_broker_that_both_sides_reach(image: str) -> None:
    port = apache.free_port()
    environment = {**os.environ, "TRILOGUE_IMAGE": image, "TRILOGUE_PORT": str(port)}
    project = [*compose(), "--project-name", new_name("trilogue"), "--file", str(ROOT / "docker" / "compose.yaml")]

    def run(*words: str) -> str:
        done = subprocess.run([*project, *words], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    try:
        run("up", "--detach", "--no-build")
        run("exec", "-T", "kafka", "trilogue", "health", "--wait=60")
        topic = new_topic(f"localhost:{port}", "composed", 1)
        write(f"localhost:{port}", topic, numbered(0, 0, 10))
        # By the name of the service, as another service would.
        told = run("exec", "-T", "kafka", "trilogue", "consume", topic, "--bootstrap", "kafka:19092")
        assert told.splitlines() == values(numbered(0, 0, 10))
    finally:
        run("down", "--volumes")


def compose() -> list[str]:
    """Compose as a plug-in of docker or, as in Debian, by itself."""
    if shutil.which("docker") and not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("neither `docker compose` nor docker-compose is installed (as root, `make docker-ready`)")
