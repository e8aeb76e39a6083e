"""What the tests of the log share."""

import os
from collections.abc import Iterator

import pytest

from trilogue.storage import system
from trilogue.storage.indirect import Indirect
from trilogue.storage.log import SHARED_FILES


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug on a test, so nothing has to reach the disk; thousands of fsyncs take most of the time.

    Not where storage has its second form: whether the system would take the call is what matters there."""
    if not isinstance(system.SYSTEM, Indirect):
        monkeypatch.setattr(os, "fsync", lambda fd: None)
        monkeypatch.setattr(system, "fsync", lambda fd: None)


@pytest.fixture(autouse=True)
def _no_descriptors_left() -> Iterator[None]:
    """Logs that tests leave open add up, and other tests of this process have libraries that know only 1,024."""
    yield
    SHARED_FILES.clear()
