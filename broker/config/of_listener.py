"""What a setting is for one listener, and for one SASL mechanism there.

`listener.name.internal.scram-sha-256.sasl.jaas.config` goes before `listener.name.internal.sasl.jaas.config`, and
that before `sasl.jaas.config`.
"""

from typing import Any

from trilogue.broker.config.broker import BrokerConfig


def of_listener(config: BrokerConfig, listener: str, name: str, mechanism: str | None = None) -> Any:
    """The value in force.  Any: the tables know its type, mypy cannot."""
    values = (config.get(each) for each in names(listener, name, mechanism))
    return next((value for value in values if value is not None), None)


def names(listener: str, name: str, mechanism: str | None = None) -> list[str]:
    prefix = f"listener.name.{listener.lower()}"
    its_own = [f"{prefix}.{mechanism.lower()}.{name}"] if mechanism is not None else []
    return [*its_own, f"{prefix}.{name}", name]
