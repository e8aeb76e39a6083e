"""The settings of a subscription to clients' metrics (KIP-714)."""

from trilogue.broker.config.rules import ANY
from trilogue.broker.config.setting import INT, LIST, Setting

# fmt: off
SETTINGS = [
    Setting("metrics", LIST, [], ANY, doc="The metrics that are wanted, by the beginnings of their names; * for all."),
    Setting("interval.ms", INT, 300_000, doc="How often clients push their metrics."),
    Setting("match", LIST, [], ANY, doc="Which clients are asked, as name=pattern; all if empty."),
]
