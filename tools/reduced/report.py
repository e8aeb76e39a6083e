"""The pytest plugin of `make test-reduced`: sees to it that less is there, and counts what was left out for that."""

import os

import pytest
from posix_only import BEGINNING


def pytest_report_header() -> str:
    if hasattr(os, "pread"):
        raise pytest.UsageError("nothing is reduced: run `make test-reduced`")
    return "reduced: without positional reads, epoll, fcntl, sendfile; open files can be neither renamed nor removed"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    left_out = [each for each in skipped if isinstance(each.longrepr, tuple) and BEGINNING in each.longrepr[2]]
    terminalreporter.write_line(f"reduced: {len(left_out)} tests left out because they are about POSIX itself")
