"""A broker for a whole module of tests, and a person at a keyboard."""

import io
import sys

import pytest

from trilogue.cli.main import main
from trilogue.testing import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker(num_partitions=1) as broker:
        yield broker


class Person:
    """Types commands; what they print is what `__call__` gives back."""

    def __init__(self, capsys, monkeypatch, tmp_path, bootstrap):
        self._capsys, self._monkeypatch, self._stdin = capsys, monkeypatch, tmp_path / "stdin"
        monkeypatch.setenv("TRILOGUE_BOOTSTRAP", bootstrap)

    def __call__(self, *words: str, stdin: bytes = b"") -> str:
        """Everything goes well."""
        code, out, err = self.attempt(*words, stdin=stdin)
        assert (code, err) == (0, "")
        return out

    def fails(self, *words: str, stdin: bytes = b"") -> str:
        """It says one line, and nothing else."""
        code, out, err = self.attempt(*words, stdin=stdin)
        assert (code, out, err.count("\n")) == (1, "", 1)
        return err.removeprefix("trilogue: ").rstrip()

    def attempt(self, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        self._stdin.write_bytes(stdin)
        self._capsys.readouterr()
        with self._stdin.open("rb") as raw:
            self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
            code = main(words)
        out, err = self._capsys.readouterr()
        return code, out, err

    def watches(self) -> None:
        """From here on stdout is a terminal."""
        self._monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


@pytest.fixture
def trilogue_cli(capsys, monkeypatch, tmp_path, broker) -> Person:
    broker.reset()
    return Person(capsys, monkeypatch, tmp_path, broker.bootstrap)
