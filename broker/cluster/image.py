"""What a broker knows of its cluster: immutable, and made of the store's nodes by pure functions.

The layout follows Kafka's under ZooKeeper where it had one:

    /cluster/id                                 {"id": ...}
    /controller          (ephemeral)            {"brokerid": ...}
    /controller_epoch                           a number
    /brokers/ids/1       (ephemeral)            endpoints; the node's creation number is the broker's epoch
    /brokers/topics/T                           id, and the replicas of every partition
    /brokers/topics/T/partitions/0/state        leader, epoch, ISR; its version is the partition's epoch
    /config/topics/T, /config/brokers/1, ...    settings that differ from the defaults
    /latest_producer_id_block                   who may hand out which producer ids
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from trilogue.broker.cluster.store import Node
from trilogue.wire.ids import uuid_bytes, uuid_text

NO_LEADER = -1
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH = "/cluster/id", "/controller", "/controller_epoch"
BROKERS, TOPICS, CONFIG, PRODUCER_IDS = "/brokers/ids/", "/brokers/topics/", "/config/", "/latest_producer_id_block"


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int


class BrokerInfo(NamedTuple):
    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    epoch: int
    """Of this registration of the broker: a restarted one has a larger."""

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.listener == listener), None)


class PartitionState(NamedTuple):
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    leader_broker_epoch: int = -1
    """The epoch of the broker that was elected: if it has registered anew since, another leader epoch has to begin."""
    version: int = 0
    """Of the node in the store: what a change of it is decided on."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    def to_json(self, controller_epoch: int) -> bytes:
        return to_json(
            version=1,
            controller_epoch=controller_epoch,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            isr=self.isr,
            leader_broker_epoch=self.leader_broker_epoch,
        )


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: tuple[PartitionState, ...]
    version: int = 0

    def to_json(self) -> bytes:
        return to_json(
            version=3,
            topic_id=uuid_text(self.id),
            partitions={str(i): each.replicas for i, each in enumerate(self.partitions)},
            adding_replicas={str(i): each.adding for i, each in enumerate(self.partitions) if each.adding},
            removing_replicas={str(i): each.removing for i, each in enumerate(self.partitions) if each.removing},
        )


@dataclass(frozen=True, slots=True)
class Image:
    cluster_id: str = ""
    controller: int = -1
    controller_epoch: int = 0
    controller_epoch_version: int = -1
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    """By id."""
    configs: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    """By kind ("topics", "brokers", "groups", ...) and name; for all brokers, "<default>"."""
    config_versions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of their nodes: what a change of them is decided on."""

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found and 0 <= index < len(found.partitions) else None

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        return self.topics.get(self.topic_names.get(topic_id, ""))

    def config(self, kind: str, name: str) -> Mapping[str, str]:
        return self.configs.get((kind, name), NO_SETTINGS)

    def apply(self, changes: Mapping[str, Node | None]) -> "Image":
        """The image after these nodes have become what they are now; None is for those that are gone."""
        fields: dict[str, Any] = {}
        topics: dict[str, dict[str, Node | None]] = {}
        for path, node in changes.items():
            if path.startswith(TOPICS):
                topics.setdefault(path[len(TOPICS) :].partition("/")[0], {})[path] = node
            elif path.startswith(BROKERS):
                brokers = fields.setdefault("brokers", dict(self.brokers))
                put(brokers, int(path[len(BROKERS) :]), node and read_broker(path, node))
            elif path.startswith(CONFIG):
                kind, _, name = path[len(CONFIG) :].partition("/")
                configs = fields.setdefault("configs", dict(self.configs))
                put(configs, (kind, name), node and json.loads(node.data)["config"])
                versions = fields.setdefault("config_versions", dict(self.config_versions))
                put(versions, (kind, name), None if node is None else node.version)
            elif path == CONTROLLER:
                fields["controller"] = json.loads(node.data)["brokerid"] if node else -1
            elif path == CONTROLLER_EPOCH and node:
                fields["controller_epoch"], fields["controller_epoch_version"] = int(node.data), node.version
            elif path == CLUSTER_ID and node:
                fields["cluster_id"] = json.loads(node.data)["id"]
        if topics:
            fields |= self._apply_topics(topics)
        return replace(self, **fields)

    def _apply_topics(self, changes: Mapping[str, Mapping[str, Node | None]]) -> dict[str, Any]:
        topics, names = dict(self.topics), dict(self.topic_names)
        for name, nodes in changes.items():
            before = topics.pop(name, None)
            if before is not None:
                names.pop(before.id, None)
            after = read_topic(name, before, nodes)
            if after is not None:
                topics[name] = after
                names[after.id] = name
        return {"topics": topics, "topic_names": names}


def vanished(before: Image, after: Image) -> set[str]:
    """The topics that are gone, or are others of the same name."""
    if before.topics is after.topics:
        return set()
    return {
        name
        for name, topic in before.topics.items()
        if (found := after.topics.get(name)) is not topic and (found is None or found.id != topic.id)
    }


def put(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def read_broker(path: str, node: Node) -> BrokerInfo:
    said = json.loads(node.data)
    endpoints = tuple(Endpoint(*each) for each in said["endpoints"])
    return BrokerInfo(int(path[len(BROKERS) :]), endpoints, said.get("rack"), node.created)


def read_topic(name: str, before: Topic | None, nodes: Mapping[str, Node | None]) -> Topic | None:
    """A topic from its own node and its partitions' states, those that changed; the others are as before."""
    home = TOPICS + name
    if home in nodes:
        node = nodes[home]
        if node is None:
            return None
        said = json.loads(node.data)
        topic_id, version = uuid_bytes(said["topic_id"]), node.version
        if before is not None and before.id != topic_id:
            before = None  # deleted and made again between two looks
        old = before.partitions if before else ()
        partitions = [
            (old[i] if i < len(old) else PartitionState((), NO_LEADER, -1, ()))._replace(
                replicas=tuple(said["partitions"][str(i)]),
                adding=tuple(said["adding_replicas"].get(str(i), ())),
                removing=tuple(said["removing_replicas"].get(str(i), ())),
            )
            for i in range(len(said["partitions"]))
        ]
    elif before is None:
        return None  # states of a topic that is gone
    else:
        topic_id, version, partitions = before.id, before.version, list(before.partitions)
    for path, node in nodes.items():
        if path.endswith("/state") and node is not None:
            index = int(path[len(home) + len("/partitions/") : -len("/state")])
            if index < len(partitions):
                partitions[index] = read_state(partitions[index], node)
    return Topic(name, topic_id, tuple(partitions), version)


def read_state(before: PartitionState, node: Node) -> PartitionState:
    said = json.loads(node.data)
    return before._replace(
        leader=said["leader"],
        leader_epoch=said["leader_epoch"],
        isr=tuple(said["isr"]),
        leader_broker_epoch=said.get("leader_broker_epoch", said.get("leader_life", -1)),  # as 0.1.0 called it
        version=node.version,
    )


def topic_path(name: str) -> str:
    return TOPICS + name


def state_path(name: str, index: int) -> str:
    return f"{TOPICS}{name}/partitions/{index}/state"


def config_path(kind: str, name: str) -> str:
    return f"{CONFIG}{kind}/{name}"


def broker_path(node_id: int) -> str:
    return f"{BROKERS}{node_id}"


def to_json(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def broker_json(endpoints: Iterable[Endpoint], rack: str | None) -> bytes:
    return to_json(version=5, endpoints=[list(each) for each in endpoints], rack=rack)
