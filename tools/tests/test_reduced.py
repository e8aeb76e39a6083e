"""The reduced system is what it says: what is missing, what is refused, and what goes on as before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from posix_only import posix_only

REDUCED = Path(__file__).resolve().parents[1] / "reduced"

pytestmark = posix_only("it is made of Linux")


def run(script: str, folder: Path) -> str:
    """What a Python that lives there prints."""
    environment = {**os.environ, "PYTHONPATH": str(REDUCED)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=folder)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "missing",
    [
        "import fcntl",
        "import resource",
        "import os; os.pread",
        "import os; os.sendfile",
        "import os; os.O_CLOEXEC",
        "import select; select.epoll",
        "import select; select.poll",
        "import socket; socket.AF_UNIX",
        "import socket; socket.MSG_MORE",
        "import socket; socket.socket.sendmsg",
        "import socket; socket.socket().sendmsg",
        "import ctypes; ctypes.CDLL(None)",
    ],
)
def test_what_is_missing(missing, tmp_path):
    script = f"try:\n    {missing}\nexcept (ImportError, AttributeError, TypeError):\n    print('missing')"
    assert run(script, tmp_path) == "missing\n"


@pytest.mark.parametrize(
    "refused",
    [
        "os.rename('closed', 'there')",
        "os.rename('open', 'new')",
        "os.replace('open', 'new')",
        "os.replace('closed', 'open')",
        "os.rename('folder', 'new')",
        "os.unlink('open')",
        "os.remove('folder/open')",
        "os.open('folder', os.O_RDONLY)",
        "os.fsync(reading.fileno())",
        "select.select([reading], [], [], 0)",
        "select.select([], [], [], 0)",
    ],
)
def test_what_is_refused(refused, tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("open", "closed", "there", "folder/open"):
        (tmp_path / name).write_text(name)
    script = (
        "import os, select\n"
        "reading, below = open('open'), open('folder/open')\n"
        f"try: {refused}\n"
        "except OSError as error: print('refused')\n"
        "reading.close()\n"
        "below.close()\n"
    )
    assert run(script, tmp_path) == "refused\n"
    assert [(tmp_path / name).read_text() for name in ("open", "closed", "there")] == ["open", "closed", "there"]


def test_what_goes_on_as_before(tmp_path):
    script = (
        "import os, selectors, shutil, socket, subprocess, sys, tempfile, trio\n"
        "trio.run(trio.sleep, 0)\n"
        "one, other = socket.socketpair()\n"
        "one.send(b'x')\n"
        "with selectors.DefaultSelector() as selector:\n"
        "    selector.register(other, selectors.EVENT_READ)\n"
        "    assert selector.select(10)\n"
        "with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as file:\n"
        "    shutil.copyfile(sys.executable, os.path.join(folder, 'copy'))\n"
        "    os.replace(os.path.join(folder, 'copy'), os.path.join(folder, 'moved'))\n"
        "print(os.path.exists(folder))\n"
        "child = 'import os; print(hasattr(os, \"pread\"))'\n"
        "print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout.strip())\n"
        "for each in (one, other): each.close()\n"
    )
    assert run(script, tmp_path) == "False\nFalse\n"


def test_storage_takes_its_second_form(tmp_path):
    script = "from trilogue.storage import system; print(type(system.SYSTEM).__name__)"
    assert run(script, tmp_path) == "Indirect\n"
