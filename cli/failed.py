"""The one exception that commands end with when they cannot do what they were asked for."""


class Failed(Exception):
    """The message is for the user: what, where, and what to change."""
