"""What a broker knows of its cluster: immutable, and made of the store's nodes by pure functions.

A node that cannot be understood is said so and counts as unchanged: others can write to a store too, and one bad node
must not keep a broker from all the others.

The layout follows Kafka's under ZooKeeper where it had one:

    /cluster/id                                 {"id": ...}
    /cluster/secret                             what brokers prove to each other with that they belong here
    /controller          (ephemeral)            {"brokerid": ...}
    /controller_epoch                           a number
    /brokers/ids/1       (ephemeral)            endpoints; the node's creation number is the broker's epoch
    /brokers/registered/1                       the same, and stays until somebody unregisters the broker
    /brokers/topics/T                           id, and the replicas of every partition
    /brokers/topics/T/partitions/0/state        leader, epoch, ISR; its version is the partition's epoch
    /config/topics/T, /config/brokers/1, ...    settings that differ from the defaults
    /latest_producer_id_block                   who may hand out which producer ids
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from trilogue.broker.cluster.store import Node
from trilogue.broker.names import TopicPartition
from trilogue.wire.ids import uuid_bytes, uuid_text

logger = logging.getLogger(__name__)

GARBAGE = (ValueError, KeyError, TypeError, RecursionError)
"""What reading a node that somebody else has written may raise."""

NO_LEADER = -1
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH = "/cluster/id", "/controller", "/controller_epoch"
CLUSTER_SECRET = "/cluster/secret"
BROKERS, TOPICS, CONFIG, PRODUCER_IDS = "/brokers/ids/", "/brokers/topics/", "/config/", "/latest_producer_id_block"
REGISTERED = "/brokers/registered/"


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
    clean_epoch: int = -1
    """The epoch that it ended in before, if it ended cleanly: then it has everything that it had."""
    stopping: bool = False
    """It is about to end, and leads only what nobody else can."""
    offline: frozenset[TopicPartition] = frozenset()
    """Partitions that it cannot write to: their disk is full or has failed.  It leads them only if nobody else can."""

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
    """Replicas that were none before the move that is under way."""
    removing: tuple[int, ...] = ()
    """Replicas that will be none after it."""
    isr_epochs: tuple[int, ...] = ()
    """The broker epoch of each member of the ISR: one that has registered anew since has to show what it has."""
    elr: tuple[int, ...] = ()
    """Eligible leader replicas (KIP-966): have left an ISR that was smaller than min.insync.replicas, and so miss
    nothing that was committed."""
    topic_version: int = 0
    """Of the topic's node when a replica last left.  The two nodes are read one after the other, and a state that is
    newer than the replicas we know of is not believed: we would go on as a replica, under an epoch in which we are
    none, and be counted by what we had before we forgot it."""

    @property
    def moves(self) -> bool:
        """Whether it is on its way to other brokers."""
        return bool(self.adding or self.removing)

    def epoch_of(self, member: int) -> int:
        """Of a member of the ISR, when it joined."""
        if len(self.isr_epochs) == len(self.isr):
            return self.isr_epochs[self.isr.index(member)]
        return self.leader_broker_epoch if member == self.leader else -1  # as 0.1.0 has stored it

    def to_json(self, controller_epoch: int) -> bytes:
        return to_json(
            version=1,
            controller_epoch=controller_epoch,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            isr=self.isr,
            leader_broker_epoch=self.leader_broker_epoch,
            isr_epochs=self.isr_epochs,
            elr=self.elr,
            topic_version=self.topic_version,
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
    secret: bytes = field(default=b"", repr=False)
    controller: int = -1
    controller_epoch: int = 0
    controller_epoch_version: int = -1
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    """Those that are there."""
    registered: Mapping[int, BrokerInfo] = field(default_factory=dict)
    """All that may come back: Kafka calls those who are not there fenced."""
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    """By id."""
    unread: Mapping[str, Mapping[str, Node | None]] = field(default_factory=dict)
    """Topics that are there, but have never been understood: their nodes, for when their own becomes so."""
    configs: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    """By kind ("topics", "brokers", "groups", ...) and name; for all brokers, "<default>"."""
    config_versions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of their nodes: what a change of them is decided on."""

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found and 0 <= index < len(found.partitions) else None

    @property
    def gone(self) -> dict[int, BrokerInfo]:
        """Brokers that are registered and not there."""
        return {each: info for each, info in self.registered.items() if each not in self.brokers}

    def offline_replicas(self, topic: str, index: int) -> list[int]:
        """Replicas whose broker is gone, or whose disk is of no use."""
        state, brokers = self.topics[topic].partitions[index], self.brokers
        return [each for each in state.replicas if each not in brokers or (topic, index) in brokers[each].offline]

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
                continue
            try:
                self._apply_one(fields, path, node)
            except GARBAGE as problem:
                not_understood(path, problem)
        if topics:
            fields |= self._apply_topics(topics)
        return replace(self, **fields)

    def _apply_one(self, fields: dict[str, Any], path: str, node: Node | None) -> None:
        if path.startswith(BROKERS):
            brokers, node_id = fields.setdefault("brokers", dict(self.brokers)), int(path[len(BROKERS) :])
            put(brokers, node_id, node and read_broker(node_id, node))
        elif path.startswith(REGISTERED):
            registered, node_id = fields.setdefault("registered", dict(self.registered)), int(path[len(REGISTERED) :])
            put(registered, node_id, node and read_broker(node_id, node))
        elif path.startswith(CONFIG):
            kind, _, name = path[len(CONFIG) :].partition("/")
            versions = fields.setdefault("config_versions", dict(self.config_versions))
            put(versions, (kind, name), None if node is None else node.version)
            configs = fields.setdefault("configs", dict(self.configs))
            put(configs, (kind, name), node and read_config(node))
        elif path == CONTROLLER:
            fields["controller"] = number(said_by(node, 2), "brokerid") if node else -1
        elif path == CONTROLLER_EPOCH and node:
            fields["controller_epoch_version"] = node.version
            fields["controller_epoch"] = int(node.data)
        elif path == CLUSTER_ID and node:
            fields["cluster_id"] = text(said_by(node, 1), "id")
        elif path == CLUSTER_SECRET and node:
            fields["secret"] = node.data

    def _apply_topics(self, changes: Mapping[str, Mapping[str, Node | None]]) -> dict[str, Any]:
        topics, names, unread = dict(self.topics), dict(self.topic_names), dict(self.unread)
        for name, changed in changes.items():
            before = topics.pop(name, None)
            if before is not None:
                names.pop(before.id, None)
            nodes = {**unread.pop(name, {}), **changed}
            try:
                after = read_topic(name, before, nodes)
            except GARBAGE as problem:
                not_understood(TOPICS + name, problem)
                if before is None:
                    unread[name] = nodes
                after = before and read_topic(name, before, without(nodes, TOPICS + name))
            if after is not None:
                topics[name] = after
                names[after.id] = name
        return {"topics": topics, "topic_names": names, "unread": unread}


def vanished(before: Image, after: Image) -> set[str]:
    """The topics that are gone, or are others of the same name."""
    if before.topics is after.topics:
        return set()
    return {
        name
        for name, topic in before.topics.items()
        if (found := after.topics.get(name)) is not topic and (found is None or found.id != topic.id)
    }


def without(nodes: Mapping[str, Node | None], path: str) -> dict[str, Node | None]:
    return {each: node for each, node in nodes.items() if each != path}


def put(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def not_understood(path: str, problem: Exception) -> None:
    logger.error("%s: what is there cannot be understood, and is left alone: %r", path, problem)


def said_by(node: Node, newest: int) -> dict[str, Any]:
    """A node's JSON; `newest` is the version of it that we know."""
    said = json.loads(node.data)
    if not isinstance(said, dict):
        raise TypeError(f"not an object: {said!r:.40}")
    if said.get("version", newest) != newest and number(said, "version") > newest:
        raise ValueError(f"version {said['version']}, and we know {newest}")
    return said


def number(said: Mapping[str, Any], key: str) -> int:
    if type(said[key]) is not int:
        raise TypeError(f"{key} is {said[key]!r:.40}")
    return int(said[key])


def text(said: Mapping[str, Any], key: str) -> str:
    if not isinstance(said[key], str):
        raise TypeError(f"{key} is {said[key]!r:.40}")
    return str(said[key])


def numbers(said: Mapping[str, Any], key: str) -> tuple[int, ...]:
    if not isinstance(said[key], list) or any(type(each) is not int for each in said[key]):
        raise TypeError(f"{key} is {said[key]!r:.40}")
    return tuple(said[key])


def read_broker(node_id: int, node: Node) -> BrokerInfo:
    said = said_by(node, 5)
    endpoints = tuple(Endpoint(str(name), str(host), int(port)) for name, host, port in said["endpoints"])
    rack = said.get("rack") and text(said, "rack")
    return BrokerInfo(
        node_id,
        endpoints,
        rack,
        node.created,
        said.get("clean_epoch", -1),
        said.get("stopping") is True,
        read_offline(said),
    )


def read_offline(said: Mapping[str, Any]) -> frozenset[TopicPartition]:
    topics = dict(said.get("offline", {}))
    return frozenset((name, index) for name in topics for index in numbers(topics, name))


def read_config(node: Node) -> Mapping[str, str]:
    config = said_by(node, 1)["config"]
    return {str(name): text(config, name) for name in dict(config)}


def read_topic(name: str, before: Topic | None, nodes: Mapping[str, Node | None]) -> Topic | None:
    """A topic from its own node and its partitions' states, those that changed; the others are as before."""
    home = TOPICS + name
    if home in nodes:
        node = nodes[home]
        if node is None:
            return None
        said = said_by(node, 3)
        topic_id, version = uuid_bytes(text(said, "topic_id")), node.version
        if before is not None and before.id != topic_id:
            before = None  # deleted and made again between two looks
        old = before.partitions if before else ()
        partitions = [
            (old[i] if i < len(old) else PartitionState((), NO_LEADER, -1, ()))._replace(
                replicas=numbers(said["partitions"], str(i)),
                adding=numbers(said["adding_replicas"], str(i)) if str(i) in said["adding_replicas"] else (),
                removing=numbers(said["removing_replicas"], str(i)) if str(i) in said["removing_replicas"] else (),
            )
            for i in range(len(said["partitions"]))
        ]
    elif before is None:
        return None  # states of a topic that is gone
    else:
        topic_id, version, partitions = before.id, before.version, list(before.partitions)
    for path, node in nodes.items():
        if path.endswith("/state") and node is not None:
            index = path[len(home) + len("/partitions/") : -len("/state")]
            if index.isdecimal() and int(index) < len(partitions):
                state = read_state(path, partitions[int(index)], node)
                if state.topic_version <= version:  # otherwise both are announced, and will be read again
                    partitions[int(index)] = state
    return Topic(name, topic_id, tuple(partitions), version)


def read_state(path: str, before: PartitionState, node: Node) -> PartitionState:
    try:
        said = said_by(node, 1)
        said.setdefault("leader_broker_epoch", said.get("leader_life", -1))  # as 0.1.0 called it
        return before._replace(
            leader=number(said, "leader"),
            leader_epoch=number(said, "leader_epoch"),
            isr=numbers(said, "isr"),
            leader_broker_epoch=number(said, "leader_broker_epoch"),
            version=node.version,
            isr_epochs=numbers(said, "isr_epochs") if "isr_epochs" in said else (),
            elr=numbers(said, "elr") if "elr" in said else (),
            topic_version=number(said, "topic_version") if "topic_version" in said else 0,
        )
    except GARBAGE as problem:
        not_understood(path, problem)
        # The version is true all the same: an election puts things right, and is not in the way of the others.
        return before._replace(version=node.version)


def topic_path(name: str) -> str:
    return TOPICS + name


def state_path(name: str, index: int) -> str:
    return f"{TOPICS}{name}/partitions/{index}/state"


def config_path(kind: str, name: str) -> str:
    return f"{CONFIG}{kind}/{name}"


def broker_path(node_id: int) -> str:
    return f"{BROKERS}{node_id}"


def registration_path(node_id: int) -> str:
    return f"{REGISTERED}{node_id}"


def to_json(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def broker_json(
    endpoints: Iterable[Endpoint],
    rack: str | None,
    directories: Iterable[str] = (),
    *,
    clean_epoch: int = -1,
    stopping: bool = False,
    offline: Iterable[TopicPartition] = (),
) -> bytes:
    """`directories` are the ids of its data directories: by them a broker that starts again knows itself."""
    topics: dict[str, list[int]] = {}
    for name, index in sorted(offline):
        topics.setdefault(name, []).append(index)
    return to_json(
        version=5,
        endpoints=[list(each) for each in endpoints],
        rack=rack,
        directories=list(directories),
        clean_epoch=clean_epoch,
        stopping=stopping,
        offline=topics,
    )


def registered_directories(data: bytes) -> list[str]:
    """Of a broker, as `broker_json` has said it."""
    try:
        return [str(each) for each in json.loads(data)["directories"]]
    except GARBAGE:
        return []
