"""Other Pythons, as far as no Debian is needed: what goes along from this machine, and what is said at the end."""

import pythons


def test_what_pip_is_told_goes_along_and_nothing_else():
    told = {
        "PIP_INDEX_URL": "https://example.org/simple",
        "SSL_CERT_FILE": "/ca.crt",
        "REQUESTS_CA_BUNDLE": "/ca.crt",
        "NODE_EXTRA_CA_CERTS": "/ca.crt",
        "https_proxy": "http://example.org:1",
    }
    other = {"PIP_CACHE_DIR": "/elsewhere", "PATH": "/opt/bin", "CERTAINLY": "not", "PYTHONPATH": "/src"}

    assert pythons.carried(told | other) == told


def test_what_variables_speak_of_is_seen_and_a_folder_is_enough_for_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(pythons, "SEEN", [str(tmp_path / "certs"), "/no/such/file"])
    (tmp_path / "certs").mkdir()
    for name in ("certs/ca.crt", "pip.conf", "other.crt"):
        (tmp_path / name).touch()
    variables = {
        "PIP_CERT": f"{tmp_path}/certs/ca.crt",
        "PIP_FIND_LINKS": f"{tmp_path}/pip.conf https://example.org /no/such/folder",
        "SSL_CERT_FILE": f"{tmp_path}/other.crt",
    }

    assert pythons.to_be_seen(variables) == [tmp_path / "certs", tmp_path / "pip.conf", tmp_path / "other.crt"]


def test_a_bind_has_something_to_lie_on(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("of this machine")
    folder.mkdir()
    root = tmp_path / "root"

    assert pythons.bind(file, root / "etc/file", "ro") == ["mount", "-o", "bind,ro", str(file), f"{root}/etc/file"]
    assert pythons.bind(folder, root / "opt/folder") == ["mount", "-o", "bind", str(folder), f"{root}/opt/folder"]
    assert (root / "etc/file").read_text() == ""
    assert (root / "opt/folder").is_dir()


def test_a_line_for_each_python():
    lines = ["Python 3.13.5", "....", "", "=== 2277 passed, 4 skipped in 41.36s ===", ""]

    assert pythons.summary("trixie", lines) == "Python 3.13.5 (Debian trixie): 2277 passed, 4 skipped in 41.36s"
    assert pythons.summary("sid", ["Python 3.14.0"]) == "Python 3.14.0 (Debian sid): did not come to the tests"
    assert pythons.summary("sid", []) == "no Python (Debian sid): did not come to the tests"


def test_without_a_debian_it_says_so_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TRILOGUE_CACHE", str(tmp_path))
    monkeypatch.setattr(pythons.signal, "signal", lambda *_: None)

    assert pythons.main(["-q", "wire"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("pythons: `debootstrap` is not installed")
    assert said.count("\n") == 1
