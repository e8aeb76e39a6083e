"""A Debian of one's own, where it cannot be made."""

import os

import debian
import pytest


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRILOGUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path / "cache" / "debian"


@pytest.fixture
def debootstrap(monkeypatch, tmp_path):
    """One that finds no mirror."""
    (tmp_path / "debootstrap").write_text("#!/bin/sh\necho no such mirror\nexit 1\n")
    (tmp_path / "debootstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")


def test_without_debootstrap_it_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(debian.Missing, match="`debootstrap` is not installed"):
        debian.root_file_system("trixie")
    assert debian.main(["trixie"]) == 1
    assert capsys.readouterr().err.startswith("debian: `debootstrap` is not installed")


def test_it_is_for_root(monkeypatch, debootstrap):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(debian.Missing, match="as root"):
        debian.root_file_system("trixie")


def test_what_was_made_before_needs_neither(monkeypatch, tmp_path, cache):
    monkeypatch.setenv("PATH", str(tmp_path))
    cache.mkdir(parents=True)
    (cache / "trixie.tar").touch()

    assert debian.root_file_system("trixie") == cache / "trixie.tar"


def test_what_cannot_be_made_leaves_nothing_behind(debootstrap, cache):
    with pytest.raises(RuntimeError, match="no such mirror"):
        debian.root_file_system("trixie")

    assert list(cache.iterdir()) == []
