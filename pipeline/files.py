"""Files as Spark's driver sees them, through Hadoop: local ones, HDFS, whatever the cluster knows.

`Files` is what the rest of the folder asks for; tests have one of their own that dies at every step in turn.
"""

from typing import Any, Protocol


class Files(Protocol):
    """Paths are texts.  `rename` puts a file where none is, and makes the folders on the way."""

    def names(self, folder: str) -> list[str]:
        """What lies in a folder; nothing if it is not there."""
        ...

    def walk(self, folder: str, deep: bool = True) -> dict[str, int]:
        """The files below a folder, or just in it, as paths relative to it, and their sizes; without hidden ones."""
        ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> str:
        """OSError for what was not written to its end."""
        ...

    def write(self, path: str, text: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def delete(self, path: str) -> None:
        """A file or a whole folder; fine if it is not there."""
        ...


def hidden(path: str) -> bool:
    """What every reader of a table passes over."""
    return any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))


class HadoopFiles:
    """`session` is Spark's."""

    def __init__(self, session: Any) -> None:
        self._jvm = session._jvm
        self._conf = session._jsc.hadoopConfiguration()

    def _at(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where.getFileSystem(self._conf), where

    def names(self, folder: str) -> list[str]:
        system, where = self._at(folder)
        if not system.exists(where):
            return []
        return sorted(each.getPath().getName() for each in system.listStatus(where))

    def walk(self, folder: str, deep: bool = True) -> dict[str, int]:
        system, where = self._at(folder)
        if not system.exists(where):
            return {}
        root = system.resolvePath(where).toString().rstrip("/") + "/"
        found: dict[str, int] = {}
        each = system.listFiles(where, deep)
        while each.hasNext():
            status = each.next()
            name = status.getPath().toString().removeprefix(root)
            if not hidden(name):
                found[name] = int(status.getLen())
        return found

    def exists(self, path: str) -> bool:
        system, where = self._at(path)
        return bool(system.exists(where))

    def read(self, path: str) -> str:
        from py4j.protocol import Py4JJavaError

        system, where = self._at(path)
        stream = system.open(where)
        try:
            return bytes(stream.readAllBytes()).decode()
        except Py4JJavaError as error:  # such as a checksum that was never written, of a file whose writer was killed
            raise OSError(f"{path}: {error.java_exception.getMessage()}") from None
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        system, where = self._at(path)
        stream = system.create(where, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def rename(self, old: str, new: str) -> None:
        system, where = self._at(old)
        target = self._jvm.org.apache.hadoop.fs.Path(new)
        system.mkdirs(target.getParent())
        if not system.rename(where, target):
            raise OSError(f"{old} cannot be renamed to {new}")

    def delete(self, path: str) -> None:
        system, where = self._at(path)
        system.delete(where, True)
