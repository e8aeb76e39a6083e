"""DescribeConfigs: of topics, brokers, groups, and what has none."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest

Resource = DescribeConfigsRequest.Resource
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def resource(kind: int, name: str, *keys: str) -> Resource:
    return Resource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)


def sorted_configs(told: dict[str, Any]) -> dict[str, Any]:
    """Settings come in no order; what they mean is told in words of each broker's own."""
    for result in told["results"]:
        result["configs"].sort(key=lambda each: each["name"])
        for each in result["configs"]:
            if "documentation" in each:
                each["documentation"] = "some" if each["documentation"] else None
    return told | {"results": sorted(told["results"], key=lambda each: (each["resource_type"], each["resource_name"]))}


@scenario(DescribeConfigsRequest)
def topics(ask: Asking) -> None:
    topic = ask.topic("described", retention_ms="5000", cleanup_policy="compact").name

    def describe(case: str, *resources: Resource, **more: Any) -> None:
        ask(case, DescribeConfigsRequest(resources=list(resources), **more), tidy=sorted_configs)

    describe("everything", resource(TOPIC, topic))
    describe("with synonyms", resource(TOPIC, topic), include_synonyms=True)
    describe("with documentation", resource(TOPIC, topic, "retention.ms"), include_documentation=True)
    describe("one setting", resource(TOPIC, topic, "retention.ms"))
    describe("two settings", resource(TOPIC, topic, "retention.ms", "segment.bytes"))
    describe("an unknown setting", resource(TOPIC, topic, "no.such.setting"))
    describe("a known and an unknown setting", resource(TOPIC, topic, "no.such.setting", "flush.ms"))
    describe("the same setting twice", resource(TOPIC, topic, "flush.ms", "flush.ms"))
    none_wanted = Resource(resource_type=TOPIC, resource_name=topic, configuration_keys=[])
    describe("no settings", none_wanted)
    describe("an unknown topic", resource(TOPIC, ask.name("unknown")))
    describe("a name that cannot be", resource(TOPIC, "a/b"))
    describe("no name", resource(TOPIC, ""))
    describe("two topics", resource(TOPIC, topic, "flush.ms"), resource(TOPIC, ask.name("unknown")))
    describe("the same topic twice", resource(TOPIC, topic, "flush.ms"), resource(TOPIC, topic, "segment.bytes"))
    describe("nothing")


@scenario(DescribeConfigsRequest)
def others(ask: Asking) -> None:
    def describe(case: str, kind: int, name: str, *keys: str, **more: Any) -> None:
        ask(case, DescribeConfigsRequest(resources=[resource(kind, name, *keys)], **more), tidy=sorted_configs)

    describe("a broker's setting", BROKER, "1", "num.partitions")
    describe("with synonyms", BROKER, "1", "log.retention.ms", "num.io.threads", include_synonyms=True)
    describe("all brokers", BROKER, "")
    describe("an unknown setting", BROKER, "1", "no.such.setting")
    describe("another broker", BROKER, "9")
    describe("a broker that is no number", BROKER, "one")
    describe("a negative broker", BROKER, "-1")
    describe("loggers of another broker", LOGGER, "9")
    describe("loggers of no broker", LOGGER, "")
    describe("loggers of a broker that is no number", LOGGER, "x")
    describe("client metrics", CLIENT_METRICS, "unknown")
    describe("client metrics of no name", CLIENT_METRICS, "")
    describe("a group", GROUP, "unknown")
    describe("a group's setting", GROUP, "unknown", "consumer.session.timeout.ms", include_synonyms=True)
    describe("no group", GROUP, "")
    for kind in (0, 1, 3, 7, 64, -1):
        describe(f"kind {kind}", kind, "x")
