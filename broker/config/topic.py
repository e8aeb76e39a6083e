"""A topic's settings: what it sets itself, and otherwise what its broker says."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trilogue.broker.config.catalog import COARSER, TOPIC, TOPIC_SYNONYMS
from trilogue.broker.config.setting import Value
from trilogue.broker.config.values import read

if TYPE_CHECKING:
    from trilogue.broker.config.broker import BrokerConfig
    from trilogue.storage.config import LogConfig


class TopicConfig:
    """`topic["retention.ms"]` is the value in force; KeyError if there is no such setting."""

    __slots__ = ("_values", "broker", "overrides")

    def __init__(self, broker: "BrokerConfig", overrides: Mapping[str, str]) -> None:
        self.broker = broker
        self.overrides = overrides
        self._values: dict[str, Value] = {
            name: read(setting, overrides[name]) if name in overrides else inherited(broker, name)
            for name, setting in TOPIC.items()
        }

    def __getitem__(self, name: str) -> Any:
        """The value in force.  Any: the tables know its type, mypy cannot."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def log_config(self, jitter_ms: int = 0) -> "LogConfig":
        """What the logs of this topic have to know.  `jitter_ms` is drawn up to `segment.jitter.ms` by the caller."""
        from trilogue.storage.config import LogConfig
        from trilogue.wire.compression import Codec

        codecs = {"producer": None, "uncompressed": Codec.NONE}
        compression = self["compression.type"]
        return LogConfig(
            segment_bytes=self["internal.segment.bytes"] or self["segment.bytes"],
            segment_ms=self["segment.ms"],
            segment_jitter_ms=jitter_ms,
            segment_index_bytes=self["segment.index.bytes"],
            index_interval_bytes=self["index.interval.bytes"],
            max_message_bytes=self["max.message.bytes"],
            compression=codecs[compression] if compression in codecs else Codec[compression.upper()],
            log_append_time=self["message.timestamp.type"] == "LogAppendTime",
            message_timestamp_before_max_ms=self["message.timestamp.before.max.ms"],
            message_timestamp_after_max_ms=self["message.timestamp.after.max.ms"],
            compact="compact" in self["cleanup.policy"],
            delete="delete" in self["cleanup.policy"],
            retention_ms=self["retention.ms"],
            retention_bytes=self["retention.bytes"],
            file_delete_delay_ms=self["file.delete.delay.ms"],
            flush_messages=self["flush.messages"],
            flush_ms=self["flush.ms"],
            min_cleanable_dirty_ratio=self["min.cleanable.dirty.ratio"],
            min_compaction_lag_ms=self["min.compaction.lag.ms"],
            max_compaction_lag_ms=self["max.compaction.lag.ms"],
            delete_retention_ms=self["delete.retention.ms"],
            producer_id_expiration_ms=self.broker["producer.id.expiration.ms"],
        )


def inherited(broker: "BrokerConfig", name: str) -> Value:
    synonym = TOPIC_SYNONYMS.get(name)
    if synonym is None:
        return TOPIC[name].default
    if synonym not in COARSER:
        return broker[synonym]  # type: ignore[no-any-return]
    value = broker.ms(synonym)
    return max(value, -1) if name == "retention.ms" else value  # any negative time means for ever
