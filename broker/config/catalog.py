"""All the tables together: settings by name, and which settings speak for which others.

A topic's setting that is not set is spoken for by its broker's (`segment.ms` by `log.roll.ms`); some settings of
a broker by the same in coarser units (`log.roll.ms` by `log.roll.hours`); those of one listener by those of all
(`listener.name.internal.ssl.client.auth` by `ssl.client.auth`).
"""

import re

from trilogue.broker.config.setting import Setting, Value
from trilogue.broker.config.tables import (
    client_metrics,
    group,
    groups,
    log,
    own,
    quorum,
    remote,
    replication,
    sasl,
    security,
    server,
    topic,
    transactions,
    zookeeper,
)

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

BROKER: dict[str, Setting] = {
    setting.name: setting
    for table in (server, log, replication, groups, transactions, quorum, remote, sasl, security, own, zookeeper)
    for setting in table.SETTINGS
}
TOPIC: dict[str, Setting] = {setting.name: setting for setting in topic.SETTINGS}
GROUP: dict[str, Setting] = {setting.name: setting for setting in group.SETTINGS}
CLIENT_METRICS: dict[str, Setting] = {setting.name: setting for setting in client_metrics.SETTINGS}

BROKER_DEFAULTS: dict[str, Value] = {name: setting.default for name, setting in BROKER.items()}

ONLY_DYNAMIC: dict[str, Setting] = {setting.name: setting for setting in replication.ONLY_DYNAMIC}
"""Settings of a broker that no file has; listed only once they are set."""

TOPIC_SYNONYMS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Topic setting -> broker setting."""

COARSER = {
    "log.retention.ms": {"log.retention.minutes": MINUTE_MS, "log.retention.hours": HOUR_MS},
    "log.roll.ms": {"log.roll.hours": HOUR_MS},
    "log.roll.jitter.ms": {"log.roll.jitter.hours": HOUR_MS},
    "log.flush.interval.ms": {"log.flush.scheduler.interval.ms": 1},
}
"""Broker setting -> those that speak for it where it is unset, in order, and how many milliseconds their unit has."""


LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
OF_MECHANISMS = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
"""What a listener may set for each SASL mechanism by itself, as `listener.name.x.plain.sasl.jaas.config`."""


def find(name: str) -> Setting | None:
    """The setting of a broker with this name; that of a listener is found by its longer name too."""
    if (setting := BROKER.get(name) or ONLY_DYNAMIC.get(name)) is None and (general := without_listener(name)):
        setting = BROKER.get(general)
    return setting


def without_listener(name: str) -> str | None:
    """What a listener's setting is called for all listeners; None if it is not a listener's."""
    if not (match := LISTENER.fullmatch(name)):
        return None
    general = match[1]
    return next((each for each in OF_MECHANISMS if general.endswith(f".{each}")), general)


def broker_synonyms(name: str) -> list[str]:
    """A broker's setting and those that mean the same, the first before the others, as Kafka lists them."""
    if general := without_listener(name):
        return [name, general]
    for first, others in COARSER.items():
        if name == first or (name in others and name != "log.flush.scheduler.interval.ms"):  # which has its own meaning
            return [first, *others]
    return [name]


def group_synonym(name: str) -> str | None:
    """The setting of a broker that speaks for a group's."""
    synonym = f"group.{name}"
    return synonym if synonym in BROKER else None
