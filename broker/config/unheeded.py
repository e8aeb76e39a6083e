"""Settings that nobody heeds: which may be passed over with a warning, and which must end the start.

A key that we do not know may be meant for something else, and Kafka starts all the same.  But nobody may believe that
a broker is closed which is open to all: what sounds like security has an effect, or is refused.
"""

from collections.abc import Mapping

from trilogue.broker.config.catalog import BROKER, find, without_listener
from trilogue.broker.config.values import read

PLUGIN_PREFIXES = ("config.providers.", "listener.name.", "rsm.config.", "rlmm.config.")
"""Settings that may belong to plugins: if we do not know them, we take them unseen, as Kafka does."""
PLUGIN_PREFIX_SETTINGS = ("remote.log.storage.manager.impl.prefix", "remote.log.metadata.manager.impl.prefix")
"""Settings that say with what else the settings of plugins may begin."""
AUTHORIZER = ("super.users", "allow.everyone.if.no.acl.found")
"""Settings of Kafka's own authorizer, which its table does not have."""

SECURITY_WORDS = ("ssl", "sasl", "security", "authorizer", "acl", "super", "principal", "password", "token")
NO_EFFECT_YET = ("ssl.", "sasl.", "authorizer.", "super.", "allow.everyone.", "principal.", "delegation.")
HEEDED = (
    "sasl.enabled.mechanisms",
    "sasl.server.max.receive.size",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.mechanism.controller.protocol",
)
"""Of these, those that have an effect, or need none: brokers know each other by a mechanism of their own."""
ONLY_PREFIXED = "sasl.jaas.config"
OPEN_TO_ALL = "would have no effect, and the broker would be open to all: leave it out (KNOWN_GAPS.md)"


def is_known(name: str, given: Mapping[str, str]) -> bool:
    prefixes = (*PLUGIN_PREFIXES, *(given[each] for each in PLUGIN_PREFIX_SETTINGS if each in given))
    return find(name) is not None or name.startswith(prefixes) or name in AUTHORIZER


def sounds_like_security(name: str) -> bool:
    return any(word in SECURITY_WORDS for word in name.casefold().replace("_", ".").replace("-", ".").split("."))


def said_of_unknown(name: str) -> str:
    from difflib import get_close_matches  # not needed by who makes no mistakes

    near = get_close_matches(name, (*BROKER, *AUTHORIZER), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name}: there is no such setting{hint}"


def open_to_all(given: Mapping[str, str]) -> str | None:
    """What to say of the first setting that ought to keep somebody out, and would not."""
    for name, text in given.items():
        if name == ONLY_PREFIXED:
            return f"{name} counts only as listener.name.LISTENER.MECHANISM.{name}, both in small letters"
        plain, setting = without_listener(name) or name, find(name)
        if plain in (*HEEDED, ONLY_PREFIXED):
            continue
        is_default = setting is not None and read(setting, text, name) == setting.default
        if plain.startswith(NO_EFFECT_YET) and not is_default:
            return f"{name} {OPEN_TO_ALL}"
    return None
