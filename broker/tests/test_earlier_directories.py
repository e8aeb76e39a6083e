"""A data directory that an earlier trilogue has written opens, with everything in it.

`data/0.1.0.tar.gz` was written by 0.1.0: topic `orders` of two partitions with a setting, a committed and an aborted
transaction of `till-7` in the first, and an offset that the group `billing` has committed.
"""

import tarfile
from pathlib import Path

import pytest

from trilogue.broker.network.tests.test_transports import values_in
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.errors import ErrorCode

DATA = Path(__file__).parent / "data"
TOPIC = 2
READ_COMMITTED = 1


@pytest.fixture(params=["0.1.0"])
def raw(request, tmp_path):
    with tarfile.open(DATA / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    with running(log_dirs=str(tmp_path)) as broker, Raw(broker) as raw:
        yield raw


def test_its_topics_are_led_in_a_new_epoch(raw):
    wanted = [MetadataRequest.Topic(name="orders")]
    (topic,) = raw.ask(MetadataRequest(topics=wanted), 9, MetadataResponse).topics

    found = [(each.partition_index, each.leader_id, each.leader_epoch, each.isr_nodes) for each in topic.partitions]
    assert found == [(0, 1, 1, [1]), (1, 1, 1, [1])]


def test_its_settings_are_in_force(raw):
    asked = DescribeConfigsRequest.Resource(
        resource_type=TOPIC, resource_name="orders", configuration_keys=["retention.ms"]
    )
    (result,) = raw.ask(DescribeConfigsRequest(resources=[asked]), 4, DescribeConfigsResponse).results

    assert [(each.name, each.value) for each in result.configs] == [("retention.ms", "123456789")]


@pytest.mark.parametrize(("partition", "values"), [(0, [b"paid 0", b"paid 1", b"paid 2"]), (1, [b"plain"])])
def test_its_records_are_read(raw, partition, values):
    wanted = FetchRequest.Topic.Partition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        isolation_level=READ_COMMITTED,
        topics=[FetchRequest.Topic(topic="orders", partitions=[wanted])],
    )
    answer = raw.ask(request, 11, FetchResponse)

    (found,) = answer.responses[0].partitions
    assert values_in(answer)[: len(values)] == values
    assert len(found.aborted_transactions) == (1 if partition == 0 else 0)


def test_its_groups_go_on_where_they_were(raw):
    wanted = OffsetFetchRequest.Topic(name="orders", partition_indexes=[0])
    answer = raw.ask(OffsetFetchRequest(group_id="billing", topics=[wanted]), 5, OffsetFetchResponse)

    (found,) = answer.topics[0].partitions
    assert (found.committed_offset, found.metadata, found.error_code) == (2, "two done", ErrorCode.NONE)


def test_its_producers_are_known(raw):
    request = InitProducerIdRequest(transactional_id="till-7", transaction_timeout_ms=60_000)
    answer = raw.ask(request, 4, InitProducerIdResponse)

    assert (answer.error_code, answer.producer_id) == (ErrorCode.NONE, 0)
    assert answer.producer_epoch > 0
