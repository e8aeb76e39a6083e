"""Clients of other languages, made once; where their tools are missing or fail."""

import threading

import clients
import pytest


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRILOGUE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "clients"


def test_without_its_tool_a_client_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(clients.Missing, match="`go` is not installed, and sarama needs it"):
        clients.command("sarama")
    assert clients.main(["sarama"]) == 1
    assert "`go` is not installed" in capsys.readouterr().err


def test_an_unknown_client_is_named_with_those_there_are(capsys):
    assert clients.main(["fortran"]) == 2
    assert "none named fortran; there are kafka-python-2.0.2" in capsys.readouterr().err


def test_what_cannot_be_built_leaves_nothing_behind(monkeypatch, tmp_path, cache):
    (tmp_path / "go").write_text("#!/bin/sh\necho no such module\nexit 1\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    with pytest.raises(RuntimeError, match="no such module"):
        clients.bring("sarama")

    assert [path.name for path in cache.iterdir()] == [".sarama.lock"]


def test_of_many_that_want_the_same_one_makes_it(monkeypatch, cache):
    made = []

    def make(sources, place):
        made.append((sources / "main.go").exists())
        (place / "client").touch()

    monkeypatch.setitem(clients.CLIENTS, "sarama", clients.CLIENTS["sarama"]._replace(needs=(), make=make))
    threads = [threading.Thread(target=clients.bring, args=("sarama",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == [True]
    assert clients.command("sarama") == [str(next(cache.glob("sarama-*")) / "client")]


def test_other_sources_are_another_build(monkeypatch, tmp_path):
    before = clients.digest(clients.CLIENTS["sarama"])
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "main.go").write_text("package main\n")
    monkeypatch.setattr(clients, "PROGRAMS", tmp_path)

    assert clients.digest(clients.CLIENTS["sarama"]) != before
