"""Which settings of a broker may be altered while it runs, for one broker and for all."""

from trilogue.broker.config.catalog import find, without_listener
from trilogue.broker.config.setting import Mode

ONLY_PER_LISTENER = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Keys and certificates: may be altered for a listener, not for all at once."""

FOR_LISTENERS_OF_ALL = frozenset({"max.connection.creation.rate", "max.connections", "num.network.threads"})
"""What may be altered for a listener of that name on all brokers; the rest only for one broker."""


def is_read_only(name: str) -> bool:
    """A setting that is not ours may be a plugin's, and Kafka takes it; so does a listener's, whatever it is."""
    setting = find(name)
    return setting is not None and setting.mode is Mode.READ_ONLY and without_listener(name) is None


def is_per_broker(name: str) -> bool:
    if general := without_listener(name):
        return general not in FOR_LISTENERS_OF_ALL
    setting = find(name)
    return setting is not None and setting.mode is Mode.PER_BROKER


def may_be_set_while_running(name: str, for_all: bool) -> bool:
    return not (is_read_only(name) or name in ONLY_PER_LISTENER or (for_all and is_per_broker(name)))
