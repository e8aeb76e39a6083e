"""Files of a writer that dies after so many changes."""

import os
import shutil
from pathlib import Path

from trilogue.pipeline.files import hidden


class Died(Exception):
    pass


class Mortal:
    """Local files.  After so many changes the writer is dead: nothing more happens."""

    def __init__(self, life: int | None = None) -> None:
        self.life = life
        self.changes = 0

    def change(self) -> None:
        self.changes += 1
        if self.life is not None and self.changes > self.life:
            raise Died

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def walk(self, folder: str, deep: bool = True) -> dict[str, int]:
        found = (path for path in Path(folder).glob("**/*" if deep else "*") if path.is_file())
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in found}
        return {name: size for name, size in sizes.items() if not hidden(name)}

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read(self, path: str) -> str:
        return Path(path).read_text()

    def write(self, path: str, text: str) -> None:
        self.change()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    def rename(self, old: str, new: str) -> None:
        self.change()
        assert not os.path.exists(new)
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        os.rename(old, new)

    def delete(self, path: str) -> None:
        self.change()
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)
