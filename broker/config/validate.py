"""Whether settings may be altered so: the answers on the wire, in Kafka's words and with its codes.

Each function takes all that a resource would set, not only what changes, and raises BrokerError for the first
thing that is wrong.  A broker's mistakes are INVALID_REQUEST, those of topics and groups INVALID_CONFIG.
"""

import re
from collections.abc import Iterable, Mapping

from trilogue.broker.config.broker import BrokerConfig
from trilogue.broker.config.catalog import CLIENT_METRICS, GROUP, TOPIC, find
from trilogue.broker.config.modes import ONLY_PER_LISTENER, is_per_broker, is_read_only
from trilogue.broker.config.setting import Setting, Value
from trilogue.broker.config.together import contradiction
from trilogue.broker.config.values import ConfigError, read
from trilogue.wire.errors import BrokerError, ErrorCode

INTERVAL_MS = range(100, 3_600_001)
"""How often clients may be asked for metrics: Kafka's bounds."""
CLIENT_TRAITS = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def validate_topic_config(overrides: Mapping[str, str | None], broker: BrokerConfig | None = None) -> None:
    """What a topic would set.  `broker` is where the rest comes from; the defaults if there is none."""
    given = nothing_null(overrides)
    refuse_unknown(TOPIC, given, "Unknown topic config name: {}")
    read_all(TOPIC, given)
    topic = (broker or BrokerConfig.parse({})).topic(given)
    least, most = topic["min.compaction.lag.ms"], topic["max.compaction.lag.ms"]
    if least > most:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )
    if topic["remote.storage.enable"]:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def validate_group_config(overrides: Mapping[str, str | None], broker: BrokerConfig | None = None) -> None:
    """What a group would set.  `broker` says within which bounds; the defaults if there is none."""
    given = nothing_null(overrides)
    refuse_unknown(GROUP, given, "Unknown group config name: {}")
    values = read_all(GROUP, given)
    if complaint := beyond_bounds(values, broker or BrokerConfig.parse({})):
        raise BrokerError(ErrorCode.INVALID_CONFIG, complaint)


def validate_client_metrics_config(overrides: Mapping[str, str]) -> None:
    """What a subscription to clients' metrics would set."""
    for name in overrides:
        if name not in CLIENT_METRICS:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = read_all(CLIENT_METRICS, overrides)
    interval = values.get("interval.ms", INTERVAL_MS[0])
    if interval not in INTERVAL_MS:
        bounds = f"between {INTERVAL_MS[0]} and {INTERVAL_MS[-1]} (1 hour)"
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"Invalid value {interval} for interval.ms, interval must be {bounds}"
        )
    for pattern in read_words(values.get("match")):
        if not is_client_pattern(pattern):
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def validate_broker_config(overrides: Mapping[str, str], broker: BrokerConfig, for_all: bool = False) -> None:
    """What a broker, or all of them, would set while running.  `broker` is what is in force now."""
    refuse("Cannot update these configs dynamically", filter(is_read_only, overrides))
    refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        ONLY_PER_LISTENER.intersection(overrides),
    )
    for name, text in overrides.items():
        if setting := find(name):
            try:
                read(setting, text, name)
            except ConfigError as error:
                raise BrokerError(ErrorCode.INVALID_REQUEST, error.kafkas) from None
    if for_all:
        refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            filter(is_per_broker, overrides),
        )
    cluster, own = (overrides, broker.own) if for_all else (broker.cluster, overrides)
    if complaint := contradiction(broker.with_dynamic(cluster, own)):
        raise BrokerError(ErrorCode.INVALID_REQUEST, complaint)


def refuse(why: str, names: Iterable[str]) -> None:
    if wrong := sorted(names):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{why}: [{', '.join(wrong)}]")


def nothing_null(overrides: Mapping[str, str | None]) -> dict[str, str]:
    if nulls := [name for name, text in overrides.items() if text is None]:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)
    return {name: text for name, text in overrides.items() if text is not None}


def refuse_unknown(table: Mapping[str, Setting], given: Mapping[str, str], why: str) -> None:
    for name in given:
        if name not in table:
            raise BrokerError(ErrorCode.INVALID_CONFIG, why.format(name))


def read_all(table: Mapping[str, Setting], given: Mapping[str, str]) -> dict[str, Value]:
    try:
        return {name: read(table[name], text) for name, text in given.items()}
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, error.kafkas) from None


def beyond_bounds(values: Mapping[str, Value], broker: BrokerConfig) -> str | None:
    """A group may not set what its broker forbids: `group.consumer.min.session.timeout.ms` bounds one of them."""
    for name, value in values.items():
        kind, _, rest = name.partition(".")
        rest = rest.removeprefix("num.")
        least, most = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
        if least in broker and value < broker[least]:
            return f"{name} must be greater than or equal to {least}"
        if most in broker and value > broker[most]:
            return f"{name} must be less than or equal to {most}"
    return None


def read_words(value: Value) -> list[str]:
    return value if isinstance(value, list) else []


def is_client_pattern(text: str) -> bool:
    trait, equals, pattern = text.partition("=")
    if not equals or "=" in pattern or trait.strip() not in CLIENT_TRAITS:
        return False
    try:
        re.compile(pattern.strip())
    except re.error:
        return False
    return True
