"""What a broker's settings may not be at the same time."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trilogue.broker.config.broker import BrokerConfig


def contradiction(config: "BrokerConfig") -> str | None:
    """The first thing that does not go together, in Kafka's words."""
    if config.ms("log.retention.ms") == 0:
        return "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    if config["replica.fetch.wait.max.ms"] > config["replica.lag.time.max.ms"]:
        return "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms"
    if config["queued.max.request.bytes"] <= 0 and config["queued.max.request.bytes"] != -1:
        return "queued.max.request.bytes must be -1, or greater than 0"
    if (complaint := of_quorum(config)) is not None:
        return complaint
    return next(filter(None, (of_group(config, kind) for kind in ("consumer", "share", "streams"))), None)


def of_quorum(config: "BrokerConfig") -> str | None:
    """Kafka's quorum is one broker here, or ZooKeeper: whoever asks for another must not get brokers of one each."""
    if config["zookeeper.connect"]:
        return None
    if config["process.roles"] == ["controller"]:
        return "process.roles=controller: brokers have no controllers of their own here; leave this one out"
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if len(config[name]) > 1:
            return f"{name} has {len(config[name])} members: several brokers need zookeeper.connect (--zookeeper)"
    return None


def of_group(config: "BrokerConfig", kind: str) -> str | None:
    """Defaults for groups lie within what groups may set, and members are heard from before they count as gone."""
    for setting in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
        name, least, most = (f"group.{kind}.{bound}{setting}" for bound in ("", "min.", "max."))
        if config[most] < config[least]:
            return f"{most} must be greater than or equal to {least}"
        if config[name] < config[least]:
            return f"{name} must be greater than or equal to {least}"
        if config[name] > config[most]:
            return f"{name} must be less than or equal to {most}"
    heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
    return f"{heartbeat} must be less than {session}" if config[heartbeat] >= config[session] else None
