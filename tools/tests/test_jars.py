"""Java things from Maven, where there is neither."""

import jars
import pytest


def test_without_java_it_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(jars.Missing, match="`java` is not installed"):
        jars.classpath("kafka-4.3.1")
    assert jars.main(["kafka-4.3.1"]) == 1
    assert "`java` is not installed" in capsys.readouterr().err


def test_an_unknown_set_is_named_with_those_there_are(capsys):
    assert jars.main(["kafka-0.7"]) == 2
    assert "no set named kafka-0.7; there are kafka-4.3.1" in capsys.readouterr().err


def test_what_maven_cannot_bring_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("TRILOGUE_CACHE", str(tmp_path / "cache"))
    fake = tmp_path / "bin"
    fake.mkdir()
    for name, code in (("java", 0), ("mvn", 1)):
        (fake / name).write_text(f"#!/bin/sh\necho no such artifact\nexit {code}\n")
        (fake / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake}:/bin:/usr/bin")

    with pytest.raises(RuntimeError, match="no such artifact"):
        jars.bring("clients-4.4.0")

    assert list((tmp_path / "cache" / "jars").iterdir()) == []
