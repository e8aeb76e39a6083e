"""Transactions, and the topic that remembers them."""

from trilogue.broker.config.rules import at_least
from trilogue.broker.config.setting import BOOLEAN, CLUSTER_WIDE, INT, SHORT, Setting

# fmt: off
SETTINGS = [
    Setting("transaction.max.timeout.ms", INT, 900_000, at_least(1),
            doc="The longest transaction that a producer may ask for."),
    Setting("transactional.id.expiration.ms", INT, 604_800_000, at_least(1),
            doc="How long a transactional id is remembered after its last transaction."),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1),
            doc="How often transactions are looked for that took too long."),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1),
            doc="How often transactional ids are looked for that may be forgotten."),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, mode=CLUSTER_WIDE,
            doc="Whether a write is checked to belong to an ongoing transaction."),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False,
            doc="Whether a transaction may wait for somebody else's decision without a timeout."),
    Setting("transaction.state.log.num.partitions", INT, 50, at_least(1),
            doc="How many partitions the transactions topic has; not to be changed later."),
    Setting("transaction.state.log.replication.factor", SHORT, 3, at_least(1),
            doc="How many replicas the transactions topic has."),
    Setting("transaction.state.log.min.isr", INT, 2, at_least(1),
            doc="How many replicas of the transactions topic have to have a record before it counts."),
    Setting("transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1),
            doc="The size at which a segment of the transactions topic is full."),
    Setting("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1),
            doc="How many bytes are read at a time when transactions are loaded."),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1),
            doc="How long to wait before a partition is added to a transaction again."),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0),
            doc="For how long adding a partition to a transaction is tried at most."),
]
