"""The settings of a topic that its logs obey.  The broker fills them in; the names are Kafka's with
underscores."""

from dataclasses import dataclass

from trilogue.wire.compression import Codec

FOREVER = 2**63 - 1
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Defaults are Kafka 4.3.1's."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    """Already drawn: by how much this partition rolls early, so that not all do at once."""
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1 << 20 | 12
    compression: Codec | None = None
    """None is `producer`: whatever the producer chose."""
    log_append_time: bool = False
    """`message.timestamp.type`."""
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = HOUR_MS
    compact: bool = False
    delete: bool = True
    """The two words of `cleanup.policy`."""
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    delete_retention_ms: int = DAY_MS
    producer_id_expiration_ms: int = DAY_MS
    check_every_record: bool = False
    """Look at the records of every batch, as Kafka does.  Ours: see validation.py for why it is off."""

    @property
    def segment_age_ms(self) -> int:
        """When a segment is finished although it is not full: what is compacted has to be out of the active one by
        `max.compaction.lag.ms`, even if `segment.ms` would let it stay there."""
        compacted = self.compact and self.max_compaction_lag_ms > 0
        return (min(self.segment_ms, self.max_compaction_lag_ms) if compacted else self.segment_ms) - (
            self.segment_jitter_ms
        )
