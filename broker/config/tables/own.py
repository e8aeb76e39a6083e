"""What Kafka has no word for: settings of ours, named `trilogue.*`."""

from trilogue.broker.config.rules import one_of
from trilogue.broker.config.setting import STRING, Setting

# fmt: off
SETTINGS = [
    Setting("trilogue.transport", STRING, "auto", one_of("auto", "gate", "tasks"),
            doc="How connections are served: gate (one task for all; Linux), tasks (one for each), or auto."),
    Setting("trilogue.cluster.id", STRING, None,
            doc="The id of a cluster that begins here, as for `kafka-storage format`; a random one without it."),
]
