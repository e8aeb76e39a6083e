"""What people have in their compose files for other images, and what it means here.

Five images, each with its own words: Apache Kafka's, Confluent's (`cp-kafka`), Bitnami's, wurstmeister's, and
Redpanda's flags in `command:`.  What means something is a setting, or a topic to make; what means nothing here is
named, so that it can be said in one line.  Passwords and rights that some images set up by variables are refused: who
asked for them must not get a broker that is open to all.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

INSIDE = 19092
"""The door for other containers and the health check, wherever it is free."""

NOT_SETTINGS = re.compile(
    r"KAFKA_(VERSION|HOME|HEAP_OPTS|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|OPTS|DEBUG|JMX_.*|(TOOLS_)?LOG4J_.*|MODE|CLUSTERS_.*)"
    r"|KAFKA_(EXTRA_FLAGS|INITIAL_.*|CERTIFICATE_.*|VOLUME_DIR|BASE_DIR|DAEMON_.*|ENABLE_KRAFT)"
)
"""About their JVM, their logging or their own start."""
OWN_WORDS = re.compile(
    r"(CONFLUENT|BITNAMI|ALLOW)_.*|CUB_CLASSPATH|(BROKER_ID|HOSTNAME|RACK|PORT)_COMMAND|SCALA_VERSION"
)
PASSWORDS = re.compile(
    r"KAFKA_((CLIENT|CONTROLLER|INTER_BROKER)_(USERS?|PASSWORDS?)|TLS_.*|ZOOKEEPER_(USER|PASSWORD|TLS_.*))"
)
LOGIN_FILE = "java.security.auth.login.config"
"""In KAFKA_OPTS: who may log in, in a file for the JVM."""

ADVERTISED_HOST = "KAFKA_ADVERTISED_HOST_NAME"
ADVERTISED_PORTS = ("KAFKA_ADVERTISED_PORT", "KAFKA_PORT")
CREATE_TOPICS, SEPARATOR = "KAFKA_CREATE_TOPICS", "KAFKA_CREATE_TOPICS_SEPARATOR"
CLUSTER_ID = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")


class Refused(Exception):
    """The message says what, and why."""


@dataclass
class Understood:
    settings: dict[str, str] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)
    """NAME:PARTITIONS:REPLICAS:CLEANUP_POLICY, as far as it is said."""
    unused: list[str] = field(default_factory=list)
    """What means nothing here."""

    @property
    def has_doors(self) -> bool:
        return "listeners" in self.settings


def understand(environment: Mapping[str, str], is_setting: Callable[[str], bool]) -> Understood:
    """Variables.  `is_setting` says whether there is a setting of this name."""
    found = Understood()
    ours = {name: value for name, value in sorted(environment.items()) if name.startswith("KAFKA_")}
    for name, value in ours.items():
        if PASSWORDS.fullmatch(name) or (name == "KAFKA_OPTS" and LOGIN_FILE in value):
            raise Refused(f"{name} would have no effect, and the broker would be open to all: leave it out")
        if name in (CREATE_TOPICS, SEPARATOR, ADVERTISED_HOST, *ADVERTISED_PORTS, *CLUSTER_ID):
            continue
        key = setting(name)
        if not NOT_SETTINGS.fullmatch(name) and is_setting(key):
            found.settings[key] = value
        else:
            found.unused.append(name)
    found.unused += sorted(name for name in environment if OWN_WORDS.fullmatch(name))
    found.topics = topics(ours.get(CREATE_TOPICS, ""), ours.get(SEPARATOR) or ",")
    cluster_id = next((environment[name] for name in CLUSTER_ID if environment.get(name)), None)
    if cluster_id is not None:
        found.settings["trilogue.cluster.id"] = cluster_id
    if ADVERTISED_HOST in ours and "advertised.listeners" not in found.settings:
        # In Kubernetes KAFKA_PORT is there by itself, and is an address.
        port = next((ours[name] for name in ADVERTISED_PORTS if ours.get(name, "").isdigit()), "9092")
        found.settings["advertised.listeners"] = f"PLAINTEXT://{ours[ADVERTISED_HOST]}:{port}"
    return with_doors(found)


def setting(variable: str) -> str:
    """KAFKA_A_B__C___D is a.b_c-d; Bitnami says KAFKA_CFG_."""
    text = variable.removeprefix("KAFKA_").removeprefix("CFG_").lower()
    return text.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def topics(text: str, separator: str) -> list[str]:
    """wurstmeister's `orders:3:1,state:1:1:compact`, perhaps over several lines."""
    return [each.strip() for line in text.splitlines() for each in line.split(separator) if each.strip()]


def with_doors(found: Understood) -> Understood:
    """Who says only where clients are told to go, as with Confluent's image, has doors at those ports."""
    advertised = found.settings.get("advertised.listeners")
    if advertised is None or found.has_doors:
        return found
    doors = [(each.partition("://")[0], each.rpartition(":")[2]) for each in split(advertised)]
    listeners = [f"{name}://:{port}" for name, port in doors]
    if str(INSIDE) not in (port for _, port in doors):
        known = found.settings.get("listener.security.protocol.map")
        others = split(known) if known else [f"{name}:PLAINTEXT" for name, _ in doors]
        found.settings["listener.security.protocol.map"] = ",".join([*others, "TRILOGUE:PLAINTEXT"])
        listeners.append(f"TRILOGUE://:{INSIDE}")
    found.settings["listeners"] = ",".join(listeners)
    return found


def split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


# -- Redpanda's flags ------------------------------------------------------------------------------

REDPANDA_SETTINGS = {
    "auto_create_topics_enabled": "auto.create.topics.enable",
    "default_topic_partitions": "num.partitions",
    "default_topic_replications": "default.replication.factor",
    "group_initial_rebalance_delay": "group.initial.rebalance.delay.ms",
    "log_retention_ms": "log.retention.ms",
    "log_segment_size": "log.segment.bytes",
}
"""Of those behind `--set redpanda.`, those that mean the same here."""


def understand_redpanda(words: Sequence[str]) -> Understood:
    """`redpanda start --kafka-addr ... --smp 1`."""
    found = Understood()
    for flag, value in flags(words):
        if flag == "--kafka-addr":
            found.settings |= addresses("listeners", value)
        elif flag == "--advertise-kafka-addr":
            found.settings |= addresses("advertised.listeners", value)
        elif flag == "--node-id":
            found.settings["node.id"] = value
        elif flag == "--set" and (known := REDPANDA_SETTINGS.get(value.partition("=")[0].rpartition(".")[2])):
            found.settings[known] = value.partition("=")[2]
        elif "sasl" in value or "tls" in value:
            raise Refused(f"{flag} {value} would have no effect, and the broker would be open to all: leave it out")
        else:
            found.unused.append(f"{flag} {value}".strip())
    return with_doors(found)


def flags(words: Sequence[str]) -> Iterable[tuple[str, str]]:
    """`--flag value`, `--flag=value` and `--flag`."""
    position = 0
    while position < len(words):
        flag, mark, value = words[position].partition("=")
        position += 1
        if not mark and position < len(words) and not words[position].startswith("-"):
            value = words[position]
            position += 1
        yield flag, value


def addresses(name: str, text: str) -> dict[str, str]:
    """`internal://0.0.0.0:9092,external://0.0.0.0:19092`; one without a name is the only one."""
    each = [part if "://" in part else f"PLAINTEXT://{part}" for part in split(text)]
    names = [part.partition("://")[0].upper() for part in each]
    said = {name: ",".join(f"{upper}://{part.partition('://')[2]}" for upper, part in zip(names, each, strict=True))}
    return said | {"listener.security.protocol.map": ",".join(f"{upper}:PLAINTEXT" for upper in names)}
