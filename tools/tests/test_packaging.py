"""What is built is what is in the folders: wheel, sdist, and the wheel made of the sdist."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINKS = sorted(path for path in (ROOT / "src" / "trilogue").iterdir() if path.is_symlink())

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A sdist, and a wheel built from it."""
    out = tmp_path_factory.mktemp("dist")
    # The tools are installed already, at their pinned versions: no second environment has to be made.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def sources() -> set[str]:
    """What the folders hold, by its import path, without tests and what Python leaves behind."""
    found = {"trilogue/__init__.py", "trilogue/__main__.py", "trilogue/py.typed"}
    for link in LINKS:
        folder = link.resolve()
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            shipped = path.suffix == ".py" or path.name in ("py.typed", "pipeline.toml")
            if shipped and not {"tests", "__pycache__"} & set(inside.parts):
                found.add(f"trilogue/{link.name}/{inside.as_posix()}")
    return found


def test_the_wheel_holds_the_folders_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")

    content = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert content == sources()


def test_the_sdist_holds_them_too(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}

    assert {f"src/{name}" for name in sources()} <= names
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names


def test_every_folder_has_its_link():
    folders = {path.parent.name for path in ROOT.glob("*/py.typed") if path.parent.name != "src"}

    assert {link.name for link in LINKS} == folders
    assert all(link.resolve() == ROOT / link.name for link in LINKS)


def test_the_wheel_works_where_there_is_no_source(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "import trilogue.wire.catalog as catalog, trilogue.cli.main as main\n"
        f"assert catalog.__file__.startswith({str(target)!r}), catalog.__file__\n"
        "assert len(catalog.requests()) == 79\n"
        "main.main(['wire', 'show', 'Heartbeat'])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "HeartbeatRequest" in done.stdout
