"""What a setting is: one line in a table, and all that Kafka's DescribeConfigs tells of it.

A line of a table is `Setting("num.partitions", INT, 1, at_least(1), doc="How many ...")`.
"""

from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

from trilogue.broker.config.rules import Rule

Value: TypeAlias = bool | int | float | str | list[str] | None


class Type(IntEnum):
    """How a value is written.  The numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Mode(Enum):
    """Whether a broker's setting may be altered while it runs, and for whom.  The words are Kafka's."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    """For one broker by its id; never for all at once."""
    CLUSTER_WIDE = "cluster-wide"
    """For one broker, or for all that do not say otherwise."""


class Setting(NamedTuple):
    name: str
    type: Type
    default: Value
    rule: Rule | None = None
    mode: Mode = Mode.READ_ONLY
    """Of brokers only: the settings of topics and groups may always be altered."""
    internal: bool = False
    """Taken, but not listed unless somebody sets it."""
    required: bool = False
    """Kafka demands it.  We do not, but then our default is nobody's synonym."""
    doc: str = ""

    @property
    def sensitive(self) -> bool:
        """Nobody is told its value."""
        return self.type is Type.PASSWORD


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = Type
PER_BROKER, CLUSTER_WIDE = Mode.PER_BROKER, Mode.CLUSTER_WIDE

# What Kafka says for "no limit": the largest number of the type.
UNLIMITED = 2**31 - 1
FOREVER = 2**63 - 1
FASTEST = 1.7976931348623157e308
