"""What is built is what is in the folders: wheel, sdist, and the wheel made of the sdist; which works by itself."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from trilogue import __version__

ROOT = Path(__file__).resolve().parents[2]
LINKS = sorted(path for path in (ROOT / "src" / "trilogue").iterdir() if path.is_symlink())

WITH_THE_FIXTURE = """
import subprocess
import sys


def test_orders(trilogue):
    subprocess.run([sys.executable, "-m", "trilogue", "health", "--bootstrap", trilogue.bootstrap], check=True)
"""

pytestmark = pytest.mark.slow


def said(*command: object, given: str = "") -> str:
    """What a command says that goes well."""
    done = subprocess.run([str(word) for word in command], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A sdist, and a wheel built from it."""
    out = tmp_path_factory.mktemp("dist")
    # The tools are installed already, at their pinned versions: no second environment has to be made.
    said(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    return out


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """Where the commands of an environment are that has the wheel, what the wheel asks for, and nothing else."""
    place = tmp_path_factory.mktemp("installed")
    said(sys.executable, "-m", "venv", place)
    install(place / "bin", *built.glob("*.whl"))
    return place / "bin"


def install(commands: Path, *what: object) -> None:
    said(commands / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *what)


@pytest.fixture(params=["trilogue", "python -m trilogue"])
def command(request, installed, tmp_path, monkeypatch) -> list[object]:
    """Both ways to say it, away from the sources."""
    monkeypatch.chdir(tmp_path)
    program, *words = request.param.split()
    return [installed / program, *words]


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


def test_the_wheel_has_the_version_of_the_package(built):
    (wheel,) = built.glob("*.whl")

    assert wheel.name == f"trilogue-{__version__}-py3-none-any.whl"


def test_installed_it_says_its_version(command):
    assert said(*command, "--version").startswith(f"trilogue {__version__} (")


def test_an_installed_broker_gives_back_what_it_was_given(command, monkeypatch):
    start = [*command, "start", "--ephemeral", "--port=0"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as broker:
        try:
            address = re.search(r"127\.0\.0\.1:\d+", broker.stdout.readline())
            monkeypatch.setenv("TRILOGUE_BOOTSTRAP", address.group())
            said(*command, "produce", "greetings", given="hello\n")
            assert said(*command, "consume", "greetings") == "hello\n"
        finally:
            broker.terminate()  # not killed: it takes its data with it


def test_its_fixture_is_there_as_soon_as_pytest_is(installed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_orders.py").write_text(WITH_THE_FIXTURE)
    install(installed, "pytest")

    assert "1 passed" in said(installed / "pytest", "-q")
