"""Apache Kafka's own command-line tools do their work."""

import json
import re
import subprocess
import uuid

import apache
import jars
import kafka
import pytest

pytestmark = pytest.mark.java

TOOLS = "Kafka's command-line tools"

KAFKA_RANGES = {
    # What kafka-broker-api-versions prints for Apache Kafka 4.3.1, for the APIs that we have; ours must be as wide.
    "Produce": (0, 13), "Fetch": (4, 18), "ListOffsets": (1, 11), "Metadata": (0, 13), "ApiVersions": (0, 4),
    "CreateTopics": (2, 7), "DeleteTopics": (1, 6), "DeleteRecords": (0, 2), "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4), "DescribeConfigs": (1, 4), "AlterConfigs": (0, 2), "AlterReplicaLogDirs": (1, 2),
    "DescribeLogDirs": (1, 5), "CreatePartitions": (0, 3), "ElectLeaders": (0, 2), "IncrementalAlterConfigs": (0, 1),
    "AlterPartitionReassignments": (0, 1), "ListPartitionReassignments": (0, 0), "DescribeQuorum": (0, 2),
    "UpdateFeatures": (0, 2), "DescribeCluster": (0, 2), "DescribeProducers": (0, 0), "UnregisterBroker": (0, 0),
    "ListConfigResources": (0, 1), "DescribeTopicPartitions": (0, 0),
    "DescribeUserScramCredentials": (0, 0), "AlterUserScramCredentials": (0, 0),
}  # fmt: skip


def tool(main: str, bootstrap: str, *arguments: str, stdin: str = "") -> str:
    """Run one of them; what it prints."""
    try:
        command = apache.command(main, "--bootstrap-server", bootstrap, *arguments, options=("-XX:+UseSerialGC",))
    except jars.Missing as missing:
        pytest.skip(f"needs Java: {missing}")
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, f"{main} {arguments}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


def topics(bootstrap: str, *arguments: str) -> str:
    return tool("org.apache.kafka.tools.TopicCommand", bootstrap, *arguments)


def configs(bootstrap: str, *arguments: str) -> str:
    return tool("kafka.admin.ConfigCommand", bootstrap, *arguments)


@pytest.fixture
def name() -> str:
    return f"tools-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def filled(bootstrap: str, name: str) -> str:
    """A topic of three partitions; ten records in partition 1."""
    topics(bootstrap, "--create", "--topic", name, "--partitions", "3", "--replication-factor", "1")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(10):
        producer.send(name, b"%d" % number, partition=1)
    producer.close()
    return name


@pytest.mark.feature(TOOLS, "kafka-topics")
def test_topics_are_made_described_grown_and_deleted(bootstrap: str, name: str, brokers: int) -> None:
    topics(bootstrap, "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=86400000")
    assert name in topics(bootstrap, "--list").splitlines()

    described = topics(bootstrap, "--describe", "--topic", name)
    assert re.search(
        rf"Topic: {name}\s+TopicId: \S{{22}}\s+PartitionCount: 2\s+ReplicationFactor: {brokers}", described
    )
    assert "retention.ms=86400000" in described
    found = re.search(r"Partition: 1\s+Leader: (\d)\s+Replicas: (\S+)\s+Isr: (\S+)", described)
    assert found is not None
    leader, *lists = found.groups()
    for each in lists:
        assert sorted(each.split(",")) == [str(number) for number in range(1, brokers + 1)]
        assert leader in each

    topics(bootstrap, "--alter", "--topic", name, "--partitions", "5")
    assert "PartitionCount: 5" in topics(bootstrap, "--describe", "--topic", name)
    topics(bootstrap, "--delete", "--topic", name)
    assert name not in topics(bootstrap, "--list").splitlines()


@pytest.mark.feature(TOOLS, "kafka-configs")
def test_settings_are_described_and_altered(bootstrap: str, name: str) -> None:
    topics(bootstrap, "--create", "--topic", name)
    about = ("--entity-type", "topics", "--entity-name", name)

    configs(bootstrap, *about, "--alter", "--add-config", "max.message.bytes=2000000,cleanup.policy=[compact,delete]")
    described = configs(bootstrap, *about, "--describe")
    assert "max.message.bytes=2000000" in described
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000000" in described
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in described
    configs(bootstrap, *about, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes=2000000" not in configs(bootstrap, *about, "--describe")
    everything = configs(bootstrap, "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all")
    assert "num.partitions=" in everything
    assert everything.count("\n") > 200


@pytest.mark.feature(TOOLS, "kafka-get-offsets")
def test_offsets_are_found_by_place_and_by_time(bootstrap: str, filled: str) -> None:
    shell = "org.apache.kafka.tools.GetOffsetShell"

    ends = tool(shell, bootstrap, "--topic", filled).split()
    starts = tool(shell, bootstrap, "--topic", filled, "--time", "earliest").split()
    first = tool(shell, bootstrap, "--topic", filled, "--time", "1000").split()

    assert ends == [f"{filled}:0:0", f"{filled}:1:10", f"{filled}:2:0"]
    assert starts == [f"{filled}:0:0", f"{filled}:1:0", f"{filled}:2:0"]
    assert f"{filled}:1:0" in first


@pytest.mark.feature(TOOLS, "kafka-delete-records")
def test_records_are_deleted(bootstrap: str, filled: str, tmp_path) -> None:
    wish = {"version": 1, "partitions": [{"topic": filled, "partition": 1, "offset": 4}]}
    (tmp_path / "wish.json").write_text(json.dumps(wish))

    said = tool(
        "org.apache.kafka.tools.DeleteRecordsCommand", bootstrap, "--offset-json-file", str(tmp_path / "wish.json")
    )

    assert "low_watermark: 4" in said
    shell = "org.apache.kafka.tools.GetOffsetShell"
    assert f"{filled}:1:4" in tool(shell, bootstrap, "--topic", filled, "--time", "earliest")


@pytest.mark.feature(TOOLS, "kafka-log-dirs")
def test_log_dirs_are_described_with_true_sizes(bootstrap: str, filled: str, brokers: int) -> None:
    said = tool("org.apache.kafka.tools.LogDirsCommand", bootstrap, "--describe", "--topic-list", filled)

    (described,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert len(described["brokers"]) == brokers
    sizes = [
        (partition["partition"], partition["size"])
        for broker in described["brokers"]
        for each in broker["logDirs"]
        for partition in each["partitions"]
    ]
    assert sorted(name for name, _ in sizes) == [f"{filled}-{number}" for number in range(3)]
    assert dict(sizes)[f"{filled}-1"] > 10 * 8
    assert dict(sizes)[f"{filled}-0"] == 0


@pytest.mark.feature(TOOLS, "kafka-producer-perf-test")
def test_the_perf_tool_writes_what_it_says(bootstrap: str, name: str) -> None:
    topics(bootstrap, "--create", "--topic", name)
    said = tool(
        "org.apache.kafka.tools.ProducerPerformance",
        bootstrap,
        *("--topic", name, "--num-records", "20000", "--record-size", "1000", "--throughput", "-1"),
    )

    assert "20000 records sent" in said
    assert tool("org.apache.kafka.tools.GetOffsetShell", bootstrap, "--topic", name).split() == [f"{name}:0:20000"]


@pytest.mark.feature(TOOLS, "kafka-broker-api-versions")
def test_every_range_is_kafkas_or_wider(bootstrap: str) -> None:
    said = tool("org.apache.kafka.tools.BrokerApiVersionsCommand", bootstrap)

    ranges = {
        found[1]: (int(found[2]), int(found[3] or found[2]))
        for found in re.finditer(r"(\w+)\(\d+\): (\d+)(?: to (\d+))?", said)
    }
    narrower = {
        each: (ranges.get(each), wanted)
        for each, wanted in KAFKA_RANGES.items()
        if each not in ranges or ranges[each][0] > wanted[0] or ranges[each][1] < wanted[1]
    }
    assert narrower == {}


@pytest.mark.feature(TOOLS, "kafka-features")
def test_features_and_the_quorum_can_be_asked_about(bootstrap: str) -> None:
    features = tool("org.apache.kafka.tools.FeatureCommand", bootstrap, "describe")

    assert "Feature: " in features or features == ""


@pytest.mark.feature(TOOLS, "kafka-console-producer, kafka-console-consumer")
def test_the_console_tools_talk_to_each_other(bootstrap: str, name: str) -> None:
    topics(bootstrap, "--create", "--topic", name)
    reading = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tool("org.apache.kafka.tools.ConsoleProducer", bootstrap, "--topic", name, *reading, stdin="a:1\nb:2\n")

    said = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        bootstrap,
        *("--topic", name, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", "2", "--formatter-property", "print.key=true", "--timeout-ms", "20000"),
    )

    assert said.splitlines() == ["a\t1", "b\t2"]
