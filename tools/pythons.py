"""The tests on other Pythons than this one, each in the Debian that brings it.

    python3 tools/pythons.py -q wire storage        the words are pytest's

A Debian (tools/debian.py) is unpacked, this source tree is copied into it, a virtual environment is made there with the
test dependencies, and pytest runs.  Mounts are made in a namespace that ends with its processes, all the rest in a
folder that is removed: nothing is left behind, and nothing outside is written to but a cache for pip.

Package registries are reached as they are from here: what pip is told by variables and files, and the certificates of
this machine, are seen in there under the same paths.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import debian

SUITES = ("trixie", "sid")
"""Debians with Python 3.13 and 3.14."""
ROOT = Path(__file__).resolve().parents[1]
NOT_SOURCES = (
    ".git",
    ".venv",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "build",
    "dist",
    "*.egg-info",
    "trilogue-data",
)

CARRIED = re.compile(r"PIP_.*|.*_CERTS?(_.*)?|.*_CA_.*|(https?|all|no)_proxy", re.IGNORECASE)
"""Variables that say where packages come from, and whom to believe."""
SEEN = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/pip.conf",
    str(Path.home() / ".config/pip/pip.conf"),
    str(Path.home() / ".pip/pip.conf"),
]
"""What of this machine is to be seen in there, where it has them."""

ENVIRONMENT = {
    "PATH": "/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": str(Path.home()),
    "LANG": "C.UTF-8",
    "PIP_CACHE_DIR": "/var/cache/pip",
    "PIP_CONSTRAINT": "/trilogue/constraints.txt",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
# Not the group `dev`: linters and plots need no second Python, and Spark is not started where there is no Java.
INSIDE = """
python3 --version
cd /trilogue
python3 -m venv /venv
pip install --quiet --group test --group compat
pip install --quiet --no-build-isolation --editable '.[zookeeper,pipeline]'
exec python -m pytest {words}
"""


def run(suite: str, words: Sequence[str]) -> tuple[int, str]:
    """pytest's exit code, and one line that says what was seen."""
    archive = debian.root_file_system(suite)
    check_mounting()
    wheels = archive.parent / "pip"
    wheels.mkdir(exist_ok=True)
    variables = carried(os.environ)
    with tempfile.TemporaryDirectory(prefix="trilogue-python-") as name:
        root = Path(name)
        subprocess.run(["tar", "-C", root, "-xf", archive], check=True)
        shutil.copytree(ROOT, root / "trilogue", ignore=shutil.ignore_patterns(*NOT_SOURCES), symlinks=True)
        commands = [
            ["mount", "-t", "proc", "proc", f"{root}/proc"],
            ["mount", "--rbind", "/dev", f"{root}/dev"],
            bind(wheels, within(root, ENVIRONMENT["PIP_CACHE_DIR"])),
            *(bind(path, within(root, path), "ro") for path in to_be_seen(variables)),
            ["exec", "chroot", name, "sh", "-euc", INSIDE.format(words=shlex.join(words))],
        ]
        code, lines = follow("\n".join(map(shlex.join, commands)), variables | ENVIRONMENT)
    return code, summary(suite, lines)


def check_mounting() -> None:
    done = subprocess.run([*NAMESPACE, "true"], capture_output=True, text=True)
    if done.returncode:
        raise debian.Missing(f"mounts are for root, where they are allowed at all ({done.stderr.strip()})")


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if CARRIED.fullmatch(name) and name not in ENVIRONMENT}


def to_be_seen(variables: Mapping[str, str]) -> list[Path]:
    """Files and folders of this machine: SEEN, and what these variables speak of.  A folder brings what is in it."""
    words = [*SEEN, *(word for value in variables.values() for word in value.split() if word.startswith("/"))]
    found = [path for path in map(Path, dict.fromkeys(words)) if path.exists()]
    return [path for path in found if not set(path.parents) & set(found)]


def within(root: Path, path: str | Path) -> Path:
    return root / str(path).lstrip("/")


def bind(source: Path, place: Path, *options: str) -> list[str]:
    """The command that shows a file or a folder at another place, which is made here if need be."""
    if source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    return ["mount", "-o", ",".join(["bind", *options]), str(source), str(place)]


def follow(script: str, environment: Mapping[str, str]) -> tuple[int, list[str]]:
    """Runs it in a namespace of its own, and shows line by line what it says."""
    command = [*NAMESPACE, "sh", "-euc", script]
    lines = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                lines.append(line.strip())
        except BaseException:
            process.kill()  # and with it all that runs in there
            raise
    return process.returncode, lines


def summary(suite: str, lines: Sequence[str]) -> str:
    """The first line is Python's about its version, the last one pytest's about the tests."""
    said = [line for line in lines if line] or ["no Python"]
    return f"{said[0]} (Debian {suite}): {said[-1].strip('= ') if len(said) > 1 else 'did not come to the tests'}"


def main(words: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("pythons: ended"))  # and what was unpacked is removed
    try:
        seen = [run(suite, words) for suite in SUITES]
    except (debian.Missing, RuntimeError) as problem:
        print(f"pythons: {problem}", file=sys.stderr)
        return 1
    for _, line in seen:
        print(line)
    return max(code for code, _ in seen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
