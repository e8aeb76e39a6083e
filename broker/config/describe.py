"""What DescribeConfigs says: every setting of a resource, its value as text, and where the value comes from."""

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from trilogue.broker.config.broker import BrokerConfig
from trilogue.broker.config.catalog import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    ONLY_DYNAMIC,
    TOPIC,
    TOPIC_SYNONYMS,
    broker_synonyms,
    find,
    group_synonym,
)
from trilogue.broker.config.setting import Mode, Setting, Type
from trilogue.broker.config.topic import TopicConfig
from trilogue.broker.config.values import read, written


class Source(IntEnum):
    """Where a value comes from.  The numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    """Set while running, for this broker."""
    ALL_BROKERS = 3
    """Set while running, for all brokers."""
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class Entry(NamedTuple):
    name: str
    value: str | None
    source: Source
    type: Type | None
    """None for a setting that we do not know: a plugin's."""
    read_only: bool = False
    sensitive: bool = False
    synonyms: tuple[Synonym, ...] = ()
    """Every value that it could have, the one it has first."""
    doc: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT


def describe_topic(topic: TopicConfig) -> Iterator[Entry]:
    for name, setting in TOPIC.items():
        if setting.internal and name not in topic.overrides:
            continue
        value = written(setting.type, topic[name])
        synonym = TOPIC_SYNONYMS.get(name)
        inherited = synonyms_of(topic.broker, synonym, setting.sensitive) if synonym else []
        own = [Synonym(name, value, Source.TOPIC)] if name in topic.overrides else []
        yield entry(setting, value, [*own, *inherited])


def describe_group(broker: BrokerConfig, overrides: Mapping[str, str]) -> Iterator[Entry]:
    for name, setting in GROUP.items():
        if synonym := group_synonym(name):
            value, inherited = broker[synonym], synonyms_of(broker, synonym, setting.sensitive)
        else:
            value = setting.default
            inherited = [Synonym(name, written(setting.type, value), Source.DEFAULT)]
        own = []
        if name in overrides:
            value = read(setting, overrides[name])
            own = [Synonym(name, written(setting.type, value), Source.GROUP)]
        yield entry(setting, written(setting.type, value), [*own, *inherited])


def describe_client_metrics(overrides: Mapping[str, str]) -> Iterator[Entry]:
    for name, setting in CLIENT_METRICS.items():
        if name in overrides:
            value = written(setting.type, read(setting, overrides[name]))
            yield entry(setting, value, [Synonym(name, value, Source.CLIENT_METRICS)])
        else:
            yield entry(setting, written(setting.type, setting.default), [])


def describe_broker(config: BrokerConfig) -> Iterator[Entry]:
    """All its settings; those that are internal, a plugin's or one listener's only if somebody set them."""
    listed = [name for name, setting in BROKER.items() if not setting.internal]
    for name in dict.fromkeys((*listed, *config.static, *config.cluster, *config.own)):
        setting = find(name)
        value = written(setting.type, config[name]) if setting else None
        yield broker_entry(name, value, synonyms_of(config, name, is_sensitive(setting)))


def describe_all_brokers(config: BrokerConfig) -> Iterator[Entry]:
    """Only what was set for all brokers, as it was given."""
    for name, text in config.cluster.items():
        shown = None if is_sensitive(find(name)) else text
        yield broker_entry(name, shown, [Synonym(name, shown, Source.ALL_BROKERS)])


def entry(setting: Setting, value: str | None, synonyms: list[Synonym]) -> Entry:
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return Entry(setting.name, value, source, setting.type, False, setting.sensitive, tuple(synonyms), setting.doc)


def broker_entry(name: str, value: str | None, synonyms: list[Synonym]) -> Entry:
    """Kafka calls every setting of one listener read-only, and yet alters some of them; clients expect no better."""
    setting = find(name)
    source = synonyms[0].source if synonyms else Source.DEFAULT
    listed = BROKER.get(name) or ONLY_DYNAMIC.get(name)
    read_only = listed is None or listed.mode is Mode.READ_ONLY
    kind, doc = (setting.type, setting.doc) if setting else (None, None)
    return Entry(name, value, source, kind, read_only, is_sensitive(setting), tuple(synonyms), doc)


def is_sensitive(setting: Setting | None) -> bool:
    """What we do not know might be a plugin's password."""
    return setting is None or setting.sensitive


def synonyms_of(config: BrokerConfig, name: str, sensitive: bool) -> list[Synonym]:
    """All values that a broker's setting could have, the one in force first.

    Values are shown as they were given.  Kafka leaves out what comes before the first value under the setting's own
    name: where `log.retention.hours` is all that anybody set, it claims that `log.retention.ms` has its default.
    """
    layers = (
        (Source.BROKER, config.own),
        (Source.ALL_BROKERS, config.cluster),
        (Source.STATIC, config.static),
        (Source.DEFAULT, defaults(broker_synonyms(name))),
    )
    found = [
        Synonym(each, None if sensitive else layer[each], source)
        for source, layer in layers
        for each in broker_synonyms(name)
        if each in layer
    ]
    first = next((at for at, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[first:]


def defaults(names: list[str]) -> dict[str, str | None]:
    """Null is nobody's default: it is not listed."""
    settings = (BROKER[name] for name in names if name in BROKER)
    return {
        each.name: written(each.type, each.default)
        for each in settings
        if each.default is not None and not each.required
    }


def only(entries: Iterator[Entry], names: Collection[str] | None) -> Iterator[Entry]:
    """Those that were asked for; all, if nobody said which."""
    return (each for each in entries if each.name in names) if names else entries
