"""What goes wrong between a client and its brokers.

What a broker refuses by a code of the protocol is `trilogue.wire.errors.BrokerError`; these are for when there is no
such code.
"""


class ClientError(Exception):
    """The message says what, and where."""


class CannotConnect(ClientError):
    """Nobody answers there."""


class ConnectionLost(ClientError):
    """There was a connection.  What was asked last may have been done or not."""


class TimedOut(ClientError):
    """The deadline came before the answer."""


class NotSpoken(ClientError):
    """We and the broker have no version of that API in common."""
