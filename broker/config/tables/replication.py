"""Replication: how followers keep up with leaders, and who leads."""

from trilogue.broker.config.rules import at_least
from trilogue.broker.config.setting import BOOLEAN, CLUSTER_WIDE, FOREVER, INT, LONG, STRING, Setting

# fmt: off
SETTINGS = [
    Setting("min.insync.replicas", INT, 1, at_least(1), CLUSTER_WIDE,
            doc="How many replicas have to have a record before acks=all is answered."),
    Setting("unclean.leader.election.enable", BOOLEAN, False, mode=CLUSTER_WIDE,
            doc="Whether a replica that lacks records may lead when no other can."),
    Setting("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1), internal=True,
            doc="How often partitions are looked for that only a replica that lacks records could lead."),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True,
            doc="Whether leadership goes back to the first replica by itself."),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1),
            doc="How often it is checked who leads what."),
    Setting("num.replica.fetchers", INT, 1, at_least(1), CLUSTER_WIDE,
            doc="How many connections a follower fetches with from each leader's broker."),
    Setting("num.replica.alter.log.dirs.threads", INT, None,
            doc="How many replicas are moved between directories at a time."),
    Setting("replica.fetch.max.bytes", INT, 1_048_576, at_least(0),
            doc="How many bytes of a partition a follower asks for at once."),
    Setting("replica.fetch.min.bytes", INT, 1, doc="How many bytes a leader waits for before it answers a follower."),
    Setting("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0),
            doc="How many bytes a follower asks for at once, over all partitions."),
    Setting("replica.fetch.wait.max.ms", INT, 500, doc="How long a leader lets a follower wait for new records."),
    Setting("replica.fetch.backoff.ms", INT, 1_000, at_least(0),
            doc="How long a follower rests after a fetch that failed."),
    Setting("replica.lag.time.max.ms", LONG, 30_000,
            doc="How long a follower may be behind before it counts as out of sync."),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000,
            doc="How often high watermarks are written to disk."),
    Setting("replica.selector.class", STRING, None, doc="A class that says which replica a consumer may read from."),
    Setting("replica.socket.receive.buffer.bytes", INT, 65_536,
            doc="The kernel's receive buffer of a follower's connection."),
    Setting("replica.socket.timeout.ms", INT, 30_000, doc="How long a follower waits for bytes from its leader."),
    Setting("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, mode=CLUSTER_WIDE,
            doc="Whether an empty follower skips what tiered storage already holds."),
]

ONLY_DYNAMIC = [
    Setting("leader.replication.throttled.rate", LONG, FOREVER, at_least(0), CLUSTER_WIDE,
            doc="How many bytes in a second the throttled replicas of this leader are sent at most."),
    Setting("follower.replication.throttled.rate", LONG, FOREVER, at_least(0), CLUSTER_WIDE,
            doc="How many bytes in a second the throttled replicas here fetch at most."),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", LONG, FOREVER, at_least(0), CLUSTER_WIDE,
            doc="How many bytes in a second are moved between directories at most."),
]
