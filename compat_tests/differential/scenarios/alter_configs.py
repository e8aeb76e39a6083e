"""AlterConfigs and IncrementalAlterConfigs: what may be set, for real and only as a question."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.alter_configs import AlterConfigsRequest
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest
from trilogue.wire.apis.incremental_alter_configs import IncrementalAlterConfigsRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def sort_responses(told: dict[str, Any]) -> dict[str, Any]:
    """Resources come in the order of a hash table."""
    return told | {"responses": sorted(told["responses"], key=repr)}


def settings(ask: Asking, kind: int, name: str, *keys: str) -> Any:
    """What is in force now, to be written down."""
    ask.catch_up()
    wanted = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
    (found,) = ask.quietly(DescribeConfigsRequest(resources=[wanted]), 1).results
    return sorted([each.name, each.value, each.config_source] for each in found.configs)


@scenario(AlterConfigsRequest)
def replacing(ask: Asking) -> None:
    Resource, Config = AlterConfigsRequest.Resource, AlterConfigsRequest.Resource.Config
    topic = ask.topic("altered", flush_ms="1234").name

    def alter(case: str, *wanted: tuple[int, str, dict[str, str | None]], only_ask: bool = False) -> None:
        resources = [
            Resource(
                resource_type=kind,
                resource_name=name,
                configs=[Config(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in wanted
        ]
        ask(case, AlterConfigsRequest(resources=resources, validate_only=only_ask), tidy=sort_responses)

    alter("only asked", (TOPIC, topic, {"retention.ms": "5"}), only_ask=True)
    ask.note("nothing happened", settings(ask, TOPIC, topic, "retention.ms", "flush.ms"))
    alter("a setting", (TOPIC, topic, {"retention.ms": "5"}))
    ask.note("the others went", settings(ask, TOPIC, topic, "retention.ms", "flush.ms"))
    alter("none", (TOPIC, topic, {}))
    ask.note("all went", settings(ask, TOPIC, topic, "retention.ms", "flush.ms"))
    alter("an unknown setting", (TOPIC, topic, {"no.such.setting": "1"}))
    alter("a wrong value", (TOPIC, topic, {"retention.ms": "soon"}))
    alter("a wrong value, only asked", (TOPIC, topic, {"retention.ms": "soon"}), only_ask=True)
    alter("null", (TOPIC, topic, {"retention.ms": None}))
    alter("an unknown topic", (TOPIC, ask.name("unknown"), {"retention.ms": "5"}))
    alter("a name that cannot be", (TOPIC, "a/b", {"retention.ms": "5"}))
    alter("no name", (TOPIC, "", {"retention.ms": "5"}))
    # The same topic twice is not asked for: Kafka stumbles over it and never answers.
    alter("a right and a wrong one", (TOPIC, topic, {"flush.ms": "1"}), (TOPIC, ask.name("unknown"), {}))
    alter("nothing")
    alter("another broker", (BROKER, "9", {"log.cleaner.threads": "2"}))
    alter("a broker that is no number", (BROKER, "x", {"log.cleaner.threads": "2"}))
    alter("what cannot be set while running", (BROKER, "1", {"num.partitions": "7"}))
    for kind in (0, 1, 3, 64):
        alter(f"kind {kind}", (kind, "x", {"a": "b"}))


@scenario(IncrementalAlterConfigsRequest)
def step_by_step(ask: Asking) -> None:
    Resource, Config = IncrementalAlterConfigsRequest.Resource, IncrementalAlterConfigsRequest.Resource.Config
    topic = ask.topic("altered").name

    def alter(case: str, *wanted: tuple[int, str, list[tuple[str, int, str | None]]], only_ask: bool = False) -> None:
        resources = [
            Resource(
                resource_type=kind,
                resource_name=name,
                configs=[Config(name=key, config_operation=how, value=value) for key, how, value in configs],
            )
            for kind, name, configs in wanted
        ]
        asked = IncrementalAlterConfigsRequest(resources=resources, validate_only=only_ask)
        ask(case, asked, tidy=sort_responses)

    def policy() -> Any:
        return settings(ask, TOPIC, topic, "cleanup.policy", "retention.ms")

    alter("set", (TOPIC, topic, [("retention.ms", SET, "5")]))
    alter("set, only asked", (TOPIC, topic, [("retention.ms", SET, "7")]), only_ask=True)
    ask.note("after setting", policy())
    alter("append", (TOPIC, topic, [("cleanup.policy", APPEND, "compact")]))
    ask.note("after appending", policy())
    alter("append again", (TOPIC, topic, [("cleanup.policy", APPEND, "compact")]))
    ask.note("after appending again", policy())
    alter("subtract", (TOPIC, topic, [("cleanup.policy", SUBTRACT, "delete")]))
    ask.note("after subtracting", policy())
    alter("delete", (TOPIC, topic, [("cleanup.policy", DELETE, None), ("retention.ms", DELETE, "x")]))
    ask.note("after deleting", policy())
    alter("delete again", (TOPIC, topic, [("cleanup.policy", DELETE, None)]))
    alter("append to what is no list", (TOPIC, topic, [("retention.ms", APPEND, "5")]))
    alter("subtract from what is no list", (TOPIC, topic, [("retention.ms", SUBTRACT, "5")]))
    alter("append nonsense", (TOPIC, topic, [("cleanup.policy", APPEND, "burn")]))
    alter("an unknown operation", (TOPIC, topic, [("retention.ms", 9, "5")]))
    alter("set to null", (TOPIC, topic, [("retention.ms", SET, None)]))
    alter("append null", (TOPIC, topic, [("cleanup.policy", APPEND, None)]))
    alter("a wrong value", (TOPIC, topic, [("retention.ms", SET, "soon")]))
    alter("an unknown setting", (TOPIC, topic, [("no.such.setting", SET, "1")]))
    alter("an unknown setting deleted", (TOPIC, topic, [("no.such.setting", DELETE, None)]))
    alter("a setting twice", (TOPIC, topic, [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]))
    alter("a topic twice", (TOPIC, topic, [("retention.ms", SET, "1")]), (TOPIC, topic, [("flush.ms", SET, "2")]))
    alter("an unknown topic", (TOPIC, ask.name("unknown"), [("retention.ms", SET, "1")]))
    alter("a name that cannot be", (TOPIC, "a/b", [("retention.ms", SET, "1")]))
    alter("no name", (TOPIC, "", [("retention.ms", SET, "1")]))
    alter("nothing of a topic", (TOPIC, topic, []))
    alter("nothing")
    alter("another broker", (BROKER, "9", [("log.cleaner.threads", SET, "2")]))
    alter("a broker that is no number", (BROKER, "x", [("log.cleaner.threads", SET, "2")]))
    alter("what cannot be set while running", (BROKER, "1", [("num.partitions", SET, "7")]))
    alter("what cannot be set while running, for all", (BROKER, "", [("num.partitions", SET, "7")]))
    alter("a group's", (GROUP, ask.name("group"), [("consumer.session.timeout.ms", SET, "50000")]))
    alter("a group's wrong value", (GROUP, ask.name("group"), [("consumer.session.timeout.ms", SET, "5")]))
    alter("of no group", (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]))
    for kind in (0, 1, 3, 64):
        alter(f"kind {kind}", (kind, "x", [("a", SET, "b")]))
