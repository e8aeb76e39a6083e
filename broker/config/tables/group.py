"""The settings of a group.  What a group does not set, its broker's setting of the same name behind `group.` says."""

from trilogue.broker.config.rules import OFFSET_RESET, at_least, one_of
from trilogue.broker.config.setting import BOOLEAN, INT, STRING, Setting

# fmt: off
SETTINGS = [
    Setting("consumer.session.timeout.ms", INT, 45_000, at_least(1),
            doc="How long a member of this consumer group may be silent before it counts as gone."),
    Setting("consumer.heartbeat.interval.ms", INT, 5_000, at_least(1),
            doc="How often a member of this consumer group is to be heard from."),
    Setting("consumer.assignment.interval.ms", INT, 1_000, at_least(0),
            doc="How long this consumer group keeps an assignment at least."),
    Setting("share.session.timeout.ms", INT, 45_000, at_least(1),
            doc="How long a member of this share group may be silent before it counts as gone."),
    Setting("share.heartbeat.interval.ms", INT, 5_000, at_least(1),
            doc="How often a member of this share group is to be heard from."),
    Setting("share.assignment.interval.ms", INT, 1_000, at_least(0),
            doc="How long this share group keeps an assignment at least."),
    Setting("share.record.lock.duration.ms", INT, 30_000, at_least(1_000),
            doc="How long a member has to acknowledge a record before another gets it."),
    Setting("share.delivery.count.limit", INT, 5, at_least(2),
            doc="How often a record is delivered before it is given up."),
    Setting("share.partition.max.record.locks", INT, 2_000, at_least(100),
            doc="How many records of a partition may be out for delivery."),
    Setting("share.auto.offset.reset", STRING, "latest", OFFSET_RESET,
            doc="Where a share group begins with a partition that it does not know yet."),
    Setting("share.isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"),
            doc="Whether records of transactions are delivered before they are committed."),
    Setting("share.renew.acknowledge.enable", BOOLEAN, True,
            doc="Whether a member may ask for more time with a record."),
    Setting("streams.session.timeout.ms", INT, 45_000, at_least(1),
            doc="How long a member of this streams group may be silent before it counts as gone."),
    Setting("streams.heartbeat.interval.ms", INT, 5_000, at_least(1),
            doc="How often a member of this streams group is to be heard from."),
    Setting("streams.assignment.interval.ms", INT, 1_000, at_least(0),
            doc="How long this streams group keeps an assignment at least."),
    Setting("streams.initial.rebalance.delay.ms", INT, 3_000, at_least(0),
            doc="How long this streams group waits, when new, for more members before it begins."),
    Setting("streams.num.standby.replicas", INT, 0, at_least(0),
            doc="How many members keep a warm copy of each task's state."),
]
