"""DescribeConfigs: the settings of topics, brokers, groups, metrics subscriptions and loggers.

Every setting is listed, whoever set it, with the value in force and where it comes from; `configuration_keys` picks
some.  A broker answers for itself, and under an empty name for what was set for all brokers, which lists only that.
Groups and subscriptions need not exist.  Passwords and what we do not know (a plugin's, perhaps a password) are null.
v0: only whether a value is the default.  v1+: sources and, if asked for, synonyms.  v3+: types and, if asked for,
documentation.  Kafka fails the whole request for a type of resource that it does not know; we only that resource.
"""

from collections.abc import Iterator

from trilogue.broker.broker import Broker
from trilogue.broker.config import loggers
from trilogue.broker.config.alter import ResourceType, number
from trilogue.broker.config.describe import (
    Entry,
    Source,
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
    only,
)
from trilogue.broker.names import check_name
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Asked = DescribeConfigsRequest.Resource
Result = DescribeConfigsResponse.Result
Config = Result.Config


@handles(DescribeConfigsRequest)
def describe_configs(
    broker: Broker, request: DescribeConfigsRequest, peer: Peer
) -> DescribeConfigsResponse | Later[DescribeConfigsResponse]:
    return broker.turns.each(
        request.resources,
        lambda asked: described(broker, asked, request),
        lambda results: DescribeConfigsResponse(results=results),
    )


def described(broker: Broker, asked: Asked, request: DescribeConfigsRequest) -> Result:
    answer = Result(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[],
    )
    try:
        entries = only(entries_of(broker, asked), asked.configuration_keys)
        answer.configs = [config(entry, request) for entry in entries]
    except BrokerError as error:
        answer.error_code, answer.error_message = error.code, error.message or ""
    return answer


def entries_of(broker: Broker, asked: Asked) -> Iterator[Entry]:
    name = asked.resource_name
    match asked.resource_type:
        case ResourceType.TOPIC:
            check_name(name)
            if name not in broker.image.topics:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return describe_topic(broker.config.topic(broker.image.config("topics", name)))
        case ResourceType.BROKER if name == "":
            return describe_all_brokers(broker.config)
        case ResourceType.BROKER:
            demand_us(broker, name, f"expected {broker.node_id} or empty string, but received {name}")
            return describe_broker(broker.config)
        case ResourceType.BROKER_LOGGER:
            demand_name(name, "Broker id")
            demand_us(broker, name, f"expected {broker.node_id} but received {name}")
            return (Entry(logger, level, Source.LOGGER, None, doc="") for logger, level in loggers.levels().items())
        case ResourceType.CLIENT_METRICS:
            demand_name(name, "Client metrics subscription name")
            return describe_client_metrics(broker.image.config("client-metrics", name))
        case ResourceType.GROUP:
            demand_name(name, "Group name")
            return describe_group(broker.config, broker.image.config("groups", name))
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {asked.resource_type} for resource {name}")


def demand_name(name: str, what: str) -> None:
    if name == "":
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")


def demand_us(broker: Broker, name: str, otherwise: str) -> None:
    if number(name, "Broker") != broker.node_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, {otherwise}")


def config(entry: Entry, request: DescribeConfigsRequest) -> Config:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return Config(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.is_default,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[Config.Synonym(name=each.name, value=each.value, source=each.source) for each in synonyms],
        config_type=entry.type or 0,
        documentation=entry.doc if request.include_documentation or entry.source is Source.LOGGER else None,
    )
