"""The wall's clock, for records and retention: integer milliseconds.  Deadlines are trio's affair."""

import time


class Clock:
    """Can be put forward, so that tests need not wait a week for retention."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def advance(self, seconds: float) -> None:
        self._ahead_ms += int(seconds * 1000)

    def reset(self) -> None:
        """Back to the wall's."""
        self._ahead_ms = 0
