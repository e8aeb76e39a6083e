"""For a test about a fact that only a POSIX system has: left out, by name and with its reason, where that is not so.

`make test-reduced` counts them; everywhere else they run."""

import os

import pytest

BEGINNING = "POSIX only: "


def posix_only(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not hasattr(os, "pread"), reason=BEGINNING + reason)
