"""What a resource's settings become when somebody alters them, or why they may not.

Pure: an image and a request go in; out comes what is to be stored.  Several changes of one resource are made all or
none; of several resources, each for itself.  The order of the checks is Kafka's, and so are the words.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from trilogue.broker.cluster.image import Image
from trilogue.broker.config.broker import BrokerConfig
from trilogue.broker.config.catalog import BROKER, TOPIC
from trilogue.broker.config.setting import INT, LIST
from trilogue.broker.config.validate import (
    validate_broker_config,
    validate_client_metrics_config,
    validate_group_config,
    validate_topic_config,
)
from trilogue.broker.config.values import SIZES, read_whole, written
from trilogue.broker.names import check_name
from trilogue.wire.errors import BrokerError, ErrorCode

ALL_BROKERS = "<default>"
"""In the store, the name of what is set for all brokers; on the wire it is empty."""

ResourceKey: TypeAlias = tuple[str, str]
"""Where the settings of a resource are stored: ("topics", "orders")."""


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class OpType(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: int
    value: str | None


class Asked(NamedTuple):
    """What is to happen to one resource."""

    resource_type: int
    name: str
    changes: Sequence[Change]
    replace: bool = False
    """Whether what is not named is removed (AlterConfigs) or stays (IncrementalAlterConfigs)."""


class Scene(NamedTuple):
    """What the decision looks at: who we are and what is so now."""

    node_id: int
    static: BrokerConfig
    config: BrokerConfig
    image: Image


def objections(asked: Sequence[Asked]) -> Iterator[BrokerError | None]:
    """What is wrong with each request whatever the resource: said twice, or nothing said."""
    times = Counter((each.resource_type, each.name) for each in asked)
    for each in asked:
        if times[each.resource_type, each.name] > 1:
            yield BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        elif len({change.name for change in each.changes}) < len(each.changes):
            yield BrokerError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        elif nulls := [change.name for change in each.changes if is_null(change)]:
            yield BrokerError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
        else:
            yield None


def is_null(change: Change) -> bool:
    return change.value is None and change.operation != OpType.DELETE


def decide(scene: Scene, asked: Asked) -> tuple[ResourceKey, dict[str, str]]:
    """What is to be stored, and where; BrokerError if it may not be.  There are no `objections` to it."""
    match asked.resource_type:
        case ResourceType.TOPIC:
            key = "topics", asked.name
            after = altered(scene, asked, key)
            if asked.name == "":
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            check_name(asked.name)
            validate_topic_config(after, scene.config)
            if asked.name not in scene.image.topics:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{asked.name}' does not exist.")
        case ResourceType.BROKER:
            key = "brokers", str(this_node(scene, asked.name)) if asked.name else ALL_BROKERS
            after = altered(scene, asked, key)
            validate_broker_config(after, scene.config, for_all=not asked.name)
        case ResourceType.CLIENT_METRICS:
            key = "client-metrics", asked.name
            after = altered(scene, asked, key)
            if asked.name == "":
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
            validate_client_metrics_config(after)
        case ResourceType.GROUP:
            key = "groups", asked.name
            after = altered(scene, asked, key)
            if asked.name == "":
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            validate_group_config(after, scene.config)
        case _:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {asked.resource_type}")
    return key, after


def this_node(scene: Scene, name: str) -> int:
    """A broker's settings are altered by itself: only it can tell whether it can have them."""
    node_id = number(name, "Node")
    if node_id != scene.node_id:
        message = f"Unexpected broker id, expected {scene.node_id}, but received {name}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    return node_id


def number(name: str, what: str) -> int:
    """The broker that a resource of this name is about."""
    node_id = read_whole(SIZES[INT], name)
    if node_id is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{what} id must be an integer, but it is: {name}")
    return node_id


def altered(scene: Scene, asked: Asked, key: ResourceKey) -> dict[str, str]:
    before = {} if asked.replace else scene.image.config(*key)
    after = dict(before)
    for name, operation, value in asked.changes:
        if operation == OpType.DELETE:
            after.pop(name, None)
        elif operation == OpType.SET:
            after[name] = value or ""
        elif operation in (OpType.APPEND, OpType.SUBTRACT):
            refuse_unless_list(asked.resource_type, name, OpType(operation))
            words = before[name] if name in before else inherited(scene.static, asked.resource_type, name)
            after[name] = ",".join(changed_list(words, OpType(operation), value or ""))
        else:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return after


def refuse_unless_list(resource_type: int, name: str, operation: OpType) -> None:
    """Kafka does not count the lists of metrics subscriptions as such."""
    table = {ResourceType.BROKER: BROKER, ResourceType.TOPIC: TOPIC}.get(ResourceType(resource_type), {})
    if name in table and table[name].type is LIST:
        return
    if resource_type != ResourceType.BROKER:
        message = f"Can't {operation.name} to key {name} because its type is not LIST."
    elif name not in table:
        message = f"Unknown config name: {name}"
    else:
        message = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    raise BrokerError(ErrorCode.INVALID_CONFIG, message)


def inherited(static: BrokerConfig, resource_type: int, name: str) -> str:
    """What a list is that nobody has set: as the broker's file has it.  What is set for all brokers does not count."""
    value = static[name] if resource_type == ResourceType.BROKER else static.topic({})[name]
    return written(LIST, value) or ""


def changed_list(text: str, operation: OpType, value: str) -> list[str]:
    """Words are compared as they stand, blanks included."""
    words = [word for word in text.split(",") if word]
    for word in value.split(","):
        if operation is OpType.APPEND and word not in words:
            words.append(word)
        elif operation is OpType.SUBTRACT and word in words:
            words.remove(word)
    return words


def unchanged(image: Image, key: ResourceKey, after: Mapping[str, str]) -> bool:
    return image.config(*key) == after
