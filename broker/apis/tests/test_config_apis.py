"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, over the wire."""

import logging
from collections.abc import Iterator

import pytest

from trilogue.broker.config.alter import OpType, ResourceType
from trilogue.broker.config.tables import own
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from trilogue.wire.apis.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from trilogue.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import write_request

SET, DELETE, APPEND, SUBTRACT = OpType
TOPIC, BROKER, LOGGER, METRICS, GROUP = ResourceType


@pytest.fixture
def client() -> Iterator[Raw]:
    """To broker 1, which has the topic `t` of one partition."""
    with running(node_id="1") as broker, Raw(broker) as raw:
        topic = CreateTopicsRequest.Topic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        raw.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
        yield raw


def describe(client: Raw, kind: int, name: str, *keys: str, version: int = 4, documented: bool = False):
    resource = DescribeConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=documented)
    return client.ask(request, version, DescribeConfigsResponse).results[0]


def alter(client: Raw, *resources, validate_only: bool = False) -> list[tuple[int, str | None]]:
    Resource = IncrementalAlterConfigsRequest.Resource
    request = IncrementalAlterConfigsRequest(
        resources=[
            Resource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    Resource.Config(name=setting, config_operation=operation, value=value)
                    for setting, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )
    answer = client.ask(request, 1, IncrementalAlterConfigsResponse)
    return [(each.error_code, each.error_message) for each in answer.responses]


def test_a_change_is_seen_by_whoever_asks_next(client):
    assert alter(client, (TOPIC, "t", [("retention.ms", SET, "5")])) == [(0, None)]
    [config] = describe(client, TOPIC, "t", "retention.ms").configs
    assert (config.value, config.config_source, config.config_type) == ("5", 1, 5)
    assert [(each.name, each.value, each.source) for each in config.synonyms] == [("retention.ms", "5", 1)]


def test_a_dry_run_changes_nothing(client):
    assert alter(client, (TOPIC, "t", [("retention.ms", SET, "5")]), validate_only=True) == [(0, None)]
    assert describe(client, TOPIC, "t", "retention.ms").configs[0].value == "604800000"


def test_a_resource_that_is_refused_does_not_keep_others(client):
    answers = alter(client, (TOPIC, "nope", [("retention.ms", SET, "5")]), (TOPIC, "t", [("retention.ms", SET, "6")]))
    assert answers == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."), (0, None)]
    assert describe(client, TOPIC, "t", "retention.ms").configs[0].value == "6"


def test_a_topic_follows_its_broker_and_the_broker_follows_all(client):
    alter(client, (BROKER, "", [("log.retention.ms", SET, "7")]))
    assert describe(client, TOPIC, "t", "retention.ms").configs[0].config_source == 3
    assert [(each.name, each.value) for each in describe(client, BROKER, "").configs] == [("log.retention.ms", "7")]
    alter(client, (BROKER, "1", [("log.retention.ms", SET, "8")]))
    [config] = describe(client, TOPIC, "t", "retention.ms").configs
    assert (config.value, config.config_source) == ("8", 2)
    alter(client, (BROKER, "1", [("log.retention.ms", DELETE, None)]), (BROKER, "", [("log.retention.ms", DELETE, "")]))
    assert describe(client, TOPIC, "t", "retention.ms").configs[0].value == "604800000"
    assert describe(client, BROKER, "").configs == []


def test_a_replacement_forgets_what_it_does_not_name(client):
    alter(client, (TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", SET, "6")]))
    Resource = AlterConfigsRequest.Resource
    resource = Resource(
        resource_type=TOPIC, resource_name="t", configs=[Resource.Config(name="retention.ms", value="7")]
    )
    answer = client.ask(AlterConfigsRequest(resources=[resource], validate_only=False), 2, AlterConfigsResponse)
    assert [(each.error_code, each.error_message) for each in answer.responses] == [(0, None)]
    configs = {each.name: each for each in describe(client, TOPIC, "t", "retention.ms", "segment.ms").configs}
    assert (configs["retention.ms"].value, configs["segment.ms"].config_source) == ("7", 5)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (
            BROKER,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER, "abc", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: abc"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (77, "x", ErrorCode.INVALID_REQUEST, "Unexpected resource type 77 for resource x"),
    ],
)
def test_what_cannot_be_described(client, kind, name, code, message):
    result = describe(client, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [(TOPIC, "t", 33), (BROKER, "1", 340 + len(own.SETTINGS)), (GROUP, "g", 17), (METRICS, "m", 3)],
)
@pytest.mark.parametrize("version", [0, 1, 3, 4])
def test_everything_is_listed_in_every_version(client, kind, name, count, version):
    result = describe(client, kind, name, version=version)
    assert (result.error_code, len(result.configs)) == (0, count)


def test_version_0_says_whether_a_value_is_the_default(client):
    alter(client, (TOPIC, "t", [("retention.ms", SET, "5")]))
    configs = describe(client, TOPIC, "t", "retention.ms", "segment.ms", version=0).configs
    assert {each.name: each.is_default for each in configs} == {"retention.ms": False, "segment.ms": True}


def test_documentation_is_for_those_who_ask(client):
    assert describe(client, TOPIC, "t", "retention.ms").configs[0].documentation is None
    documented = describe(client, TOPIC, "t", "retention.ms", documented=True)
    assert documented.configs[0].documentation == "How long records are kept; -1 for ever."


def test_levels_of_loggers_can_be_altered(client):
    logger = logging.getLogger("trilogue.broker.tests.levels")
    try:
        assert alter(client, (LOGGER, "1", [(logger.name, SET, "ERROR")])) == [(0, None)]
        assert logger.level == logging.ERROR
        [config] = describe(client, LOGGER, "1", logger.name).configs
        assert (config.value, config.config_source) == ("ERROR", 6)
        assert alter(client, (LOGGER, "1", [(logger.name, DELETE, None)])) == [(0, None)]
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("name", "change", "code", "message"),
    [
        ("2", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
        ("", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: "),
        ("1", ("no.such", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        (
            "1",
            ("root", SET, "LOUD"),
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of root to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (
            "1",
            ("root", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            "1",
            ("root", APPEND, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_levels_that_are_refused(client, name, change, code, message):
    assert alter(client, (LOGGER, name, [change])) == [(code, message)]


def test_resources_are_listed(client):
    alter(
        client,
        (GROUP, "g", [("share.isolation.level", SET, "read_committed")]),
        (METRICS, "m", [("interval.ms", SET, "100")]),
    )
    assert listed(client, 0) == (0, [("m", METRICS)])
    assert listed(client, 1) == (0, [("t", TOPIC), ("1", BROKER), ("1", LOGGER), ("m", METRICS), ("g", GROUP)])
    assert listed(client, 1, GROUP, TOPIC) == (0, [("g", GROUP), ("t", TOPIC)])
    assert listed(client, 1, TOPIC, 77) == (ErrorCode.UNSUPPORTED_VERSION, [])


def listed(client: Raw, version: int, *types: int) -> tuple[int, list[tuple[str, int]]]:
    request = ListConfigResourcesRequest(resource_types=list(types))
    answer = client.ask(request, version, ListConfigResourcesResponse)
    return answer.error_code, [(each.resource_name, each.resource_type) for each in answer.config_resources]


def test_of_two_who_alter_at_once_neither_loses():
    """Both decide on the same settings; the later has to see what the earlier has done."""
    with running() as broker, Raw(broker) as one, Raw(broker) as other:
        topic = CreateTopicsRequest.Topic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        one.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
        for number in range(20):
            changes = [("retention.ms", str(1000 + number)), ("retention.bytes", str(2000 + number))]
            for raw, (name, value) in zip((one, other), changes, strict=True):
                raw.send(b"".join(write_request(setting(name, value), 1, 1, None)))
            assert one.receive()
            assert other.receive()
            found = {each.name: each.value for each in describe(one, TOPIC, "t").configs}
            assert (found["retention.ms"], found["retention.bytes"]) == (str(1000 + number), str(2000 + number))


def setting(name: str, value: str) -> IncrementalAlterConfigsRequest:
    Resource = IncrementalAlterConfigsRequest.Resource
    change = Resource.Config(name=name, config_operation=SET, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[Resource(resource_type=TOPIC, resource_name="t", configs=[change])]
    )
