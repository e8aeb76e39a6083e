"""What groups leave in __consumer_offsets is what Kafka's own decoder reads."""

import json
import re
import subprocess

import pytest

from trilogue.broker.machines.tests.test_groups_in_time import commit, in_jumping_time, join, running, sync, upgraded
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

KINDS = {
    "1": "offset commits",
    "2": "classic groups",
    "3": "consumer groups",
    "5": "their members",
    "6": "their target assignments",
    "7": "what members should have",
    "8": "what members have",
    "16": "patterns",
}


async def write_one_of_each(folder):
    async with running(folder, offsets_topic_num_partitions="1") as ask:
        await ask(commit(7), 5)
        first = await ask(join(), 3)
        await ask(sync(first.member_id, 1, **{first.member_id: b"mine"}), 3)
        request = ConsumerGroupHeartbeatRequest(
            group_id="n",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_regex="t.*",
            topic_partitions=[],
        )
        await ask(request, 1)
        await upgraded(ask, "between")
        request = ConsumerGroupHeartbeatRequest(group_id="back", member_id="n", member_epoch=-1)
        await upgraded(ask, request.group_id)
        await ask(request, 1)


@pytest.mark.java
def test_kafka_decodes_every_kind_of_record(tmp_path, java):
    in_jumping_time(write_one_of_each, tmp_path)
    log = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    dump = "org.apache.kafka.tools.DumpLogSegments"
    command = java("kafka-4.3.1", dump, "--offsets-decoder", "--files", str(log))
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    keys = [json.loads(each) for each in re.findall(r"key: (\{.*?\}) payload:", told)]
    assert sorted({each["type"] for each in keys}, key=int) == list(KINDS)
    assert '"offset":7' in told
    assert '"protocolType":"consumer"' in told
    assert '"regularExpression":"t.*"' in told
    assert '"topics":["t"]' in told

    def values(kind, group):
        found = re.findall(r"key: (\{.*?\}) payload: (.*)", told)
        decoded = [(json.loads(key), payload) for key, payload in found]
        return [
            None if payload == "<DELETE>" else json.loads(payload)["data"]
            for key, payload in decoded
            if key["type"] == kind and group in key["data"].values()
        ]

    classic, new = values("5", "between")
    assert classic["classicMemberMetadata"]["sessionTimeoutMs"] == 10_000
    assert [each["name"] for each in classic["classicMemberMetadata"]["supportedProtocols"]] == ["range"]
    assert new["classicMemberMetadata"] is None
    assert values("2", "between")[-1] is None
    assert values("3", "back")[-1] is None
    assert [each["clientId"] for each in values("2", "back")[-1]["members"]] == ["c"]
