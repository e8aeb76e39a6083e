"""A small Debian with its Python, as a tar file in the cache folder.

    python3 tools/debian.py trixie        make it, if it is not there yet, and print where it lies

The base of an image where no registry is reachable (compat_tests/containers.py), and where the tests run on other
Pythons (tools/pythons.py).  debootstrap makes it once, as root; it appears whole or not at all.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jars

PACKAGES = "python3,python3-venv"
LEFT_OUT = ["var/cache", "var/lib/apt", "var/log", "usr/share/doc", "usr/share/locale", "usr/share/man", "dev", "proc"]


class Missing(Exception):
    """No Debian can be made on this machine; the message says what is in the way."""


def root_file_system(suite: str) -> Path:
    place = jars.folder() / "debian" / f"{suite}.tar"
    if place.exists():
        return place
    if shutil.which("debootstrap") is None:
        raise Missing("`debootstrap` is not installed (as root, `apt-get install debootstrap`)")
    if os.geteuid() != 0:
        raise Missing("debootstrap wants to be run as root")
    place.parent.mkdir(parents=True, exist_ok=True)
    print(f"debian: making a debootstrap of {suite} ...", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        root, archive = Path(scratch, "root"), Path(scratch, "tar")
        make = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, root]
        pack = ["tar", "-C", root, *(f"--exclude=./{each}/*" for each in LEFT_OUT), "-cf", archive, "."]
        for command in (make, pack):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2000:].rstrip()}")
        archive.rename(place)
    return place


def main(suites: list[str]) -> int:
    try:
        for suite in suites:
            print(root_file_system(suite))
    except (Missing, RuntimeError) as problem:
        print(f"debian: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
