"""A broker's settings, from all that have a say: who is asked first, and what the value is.

The broker's own dynamic settings go before the dynamic settings of all brokers, those before the file and the
command line, and those before the defaults.  A BrokerConfig does not change; `with_dynamic` makes another.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from trilogue.broker.config.catalog import BROKER_DEFAULTS, COARSER, find
from trilogue.broker.config.modes import may_be_set_while_running
from trilogue.broker.config.setting import Value
from trilogue.broker.config.together import contradiction
from trilogue.broker.config.topic import TopicConfig
from trilogue.broker.config.unheeded import is_known, open_to_all, said_of_unknown
from trilogue.broker.config.values import ConfigError, read

DEVELOPMENT = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""What one broker on a desk needs otherwise than Kafka has it.  `trilogue start` puts it below what the user says."""


class BrokerConfig:
    """`config["num.partitions"]` is the value in force; KeyError if there is no such setting."""

    __slots__ = ("_values", "cluster", "own", "static")

    def __init__(self, static: Mapping[str, str], cluster: Mapping[str, str], own: Mapping[str, str]) -> None:
        """As texts: the broker's file, what was set for all brokers, what was set for this one."""
        self.static = static
        self.cluster = cluster
        self.own = own
        self._values: dict[str, Value] = BROKER_DEFAULTS | {
            name: understood(name, text) for layer in (static, cluster, own) for name, text in layer.items()
        }

    @classmethod
    def parse(cls, static: Mapping[str, str]) -> Self:
        """What the user said.  ConfigError for a name we do not know or a value it cannot have."""
        given = dict(static)
        for one, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if one in given:  # two names for one number, and Kafka reports both
                given.setdefault(other, given[one])
        for name in given:
            if not is_known(name, given):
                raise ConfigError(said_of_unknown(name), f"Unknown config name: {name}")
        config = cls(given, {}, {})
        if complaint := open_to_all(given) or contradiction(config):
            raise ConfigError(complaint, complaint)
        return config

    def with_dynamic(self, cluster: Mapping[str, str], own: Mapping[str, str]) -> "BrokerConfig":
        """The same broker after alterations.

        What a broker cannot take over from the store is left out, as in Kafka: it would otherwise not start again.
        """
        return BrokerConfig(self.static, dict(usable(cluster, for_all=True)), dict(usable(own, for_all=False)))

    def __getitem__(self, name: str) -> Any:
        """The value in force.  Any: the tables know its type, mypy cannot."""
        return self._values[name]

    def get(self, name: str) -> Any:
        """The value in force; None if there is no such setting, or nobody has said anything of it."""
        return self._values.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def ms(self, name: str) -> int:
        """A time that may be given in coarser units: `log.retention.ms` in minutes or hours."""
        if (value := self[name]) is not None:
            return int(value)
        for other, unit_ms in COARSER[name].items():
            if (value := self[other]) is not None:
                return int(value) * unit_ms
        raise KeyError(name)

    def topic(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic that sets these by itself."""
        return TopicConfig(self, overrides)


def understood(name: str, text: str) -> Value:
    return read(setting, text, name) if (setting := find(name)) else text


def usable(stored: Mapping[str, str], for_all: bool) -> Iterator[tuple[str, str]]:
    for name, text in stored.items():
        if may_be_set_while_running(name, for_all):
            try:
                understood(name, text)
            except ConfigError:
                continue
            yield name, text
