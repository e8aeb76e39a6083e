"""What the tests of the log share."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug on a test, so nothing has to reach the disk; thousands of fsyncs take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
