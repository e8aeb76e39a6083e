"""What a listener's settings say of SASL."""

from collections.abc import Mapping
from typing import NamedTuple

from trilogue.broker.config import BrokerConfig, ConfigError
from trilogue.broker.config.of_listener import of_listener
from trilogue.broker.security import jaas
from trilogue.broker.security.sasl import plain
from trilogue.wire.scram import ScramMechanism

SPOKEN = (plain.NAME, *(each.sasl_name for each in ScramMechanism))
MODULES = {plain.NAME: "PlainLoginModule", **{each.sasl_name: "ScramLoginModule" for each in ScramMechanism}}


class Sasl(NamedTuple):
    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str]
    """Of PLAIN: those whom the settings know."""
    lifetimes_ms: Mapping[str, float]
    """By mechanism, how long a login is good for; without an entry, for ever."""
    failed_delay_seconds: float

    def __repr__(self) -> str:
        return f"Sasl({', '.join(self.mechanisms)})"


def sasl_of(config: BrokerConfig, listener: str) -> Sasl:
    """Raises ConfigError."""
    mechanisms = tuple(of_listener(config, listener, "sasl.enabled.mechanisms"))
    if unknown := [each for each in mechanisms if each not in SPOKEN]:
        raise wrong(
            f"listener {listener} is to offer {unknown[0]} (sasl.enabled.mechanisms), and we speak {', '.join(SPOKEN)}"
        )
    if not mechanisms:
        raise wrong(f"listener {listener} asks who clients are, and sasl.enabled.mechanisms is empty")
    logins = {each: login_of(config, listener, each) for each in mechanisms}
    lifetimes = {each: of_listener(config, listener, "connections.max.reauth.ms", each) or 0 for each in mechanisms}
    known = logins.get(plain.NAME)
    return Sasl(
        mechanisms,
        known.users if known is not None else {},
        {name: float(value) for name, value in lifetimes.items() if value > 0},
        config["connection.failed.authentication.delay.ms"] / 1000,
    )


def login_of(config: BrokerConfig, listener: str, mechanism: str) -> jaas.Login | None:
    name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = config.get(name)
    if text is None:
        if mechanism == plain.NAME:
            raise wrong(f"{name} is not set: nobody could log in by {mechanism}")
        return None
    try:
        login = jaas.parse(text)
    except jaas.JaasError as error:
        raise wrong(f"{name}: {error}") from None
    if login.module.rpartition(".")[2] != MODULES[mechanism]:
        raise wrong(f"{name}: {mechanism} needs {MODULES[mechanism]}, not {login.module}")
    return login


def wrong(what: str) -> ConfigError:
    return ConfigError(what, what)
