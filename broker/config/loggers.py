"""Log levels as settings: the resource BROKER_LOGGER (KIP-412).  Kafka's words for levels, Python's loggers."""

import logging
from collections.abc import Iterable

from trilogue.broker.config.alter import Change, OpType
from trilogue.wire.errors import BrokerError, ErrorCode

ROOT = "root"
TRACE = 5
"""Python has nothing below DEBUG."""
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}


def levels() -> dict[str, str]:
    """Every logger there is, and the level in force."""
    known = logging.root.manager.loggerDict.items()
    loggers = {ROOT: logging.root} | {name: each for name, each in sorted(known) if isinstance(each, logging.Logger)}
    return {name: level_name(logger.getEffectiveLevel()) for name, logger in loggers.items()}


def level_name(level: int) -> str:
    """The next level above, if it is none of ours."""
    return min((each for each in LEVELS.items() if each[1] >= level), key=lambda each: each[1], default=("FATAL", 0))[0]


def alter_levels(changes: Iterable[Change], validate_only: bool) -> None:
    """All of them, or none if one is refused.  They last until the broker stops."""
    changes = list(changes)
    for change in changes:
        refuse(change)
    if not validate_only:
        for name, operation, value in changes:
            level = LEVELS[value or ""] if operation == OpType.SET else logging.NOTSET
            logging.getLogger("" if name == ROOT else name).setLevel(level)


def refuse(change: Change) -> None:
    name, operation, value = change
    if operation not in (OpType.SET, OpType.DELETE):
        if operation not in list(OpType):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
        message = f"{OpType(operation).name} operation is not allowed for the BROKER_LOGGER resource"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    if name not in levels():
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == OpType.DELETE and name == ROOT:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if operation == OpType.SET and value not in LEVELS:
        message = f"Cannot set the log level of {name} to {value} as it is not a supported log level."
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"{message} Valid log levels are {', '.join(LEVELS)}")
