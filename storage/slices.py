"""A stretch of a .log file, ready to be sent."""

from trilogue.storage import system
from trilogue.storage.files import Handle


class Slice:
    """Whole batches of one segment, the last one perhaps cut short.  Readable as long as somebody holds it,
    whatever happens to the segment meanwhile: deleted, truncated above, compacted."""

    __slots__ = ("base_offset", "handle", "position", "size")

    def __init__(self, handle: Handle, position: int, size: int, base_offset: int) -> None:
        self.handle = handle
        self.position = position
        self.size = size
        self.base_offset = base_offset
        """Of its first batch; at most the offset that was asked for, unless compaction left a gap there."""

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Slice(offset {self.base_offset}, {self.size} bytes at {self.position})"

    def before(self, size: int) -> "Slice":
        """Its first `size` bytes."""
        return Slice(self.handle, self.position, size, self.base_offset)

    def after(self, size: int) -> "Slice":
        """What follows them."""
        return Slice(self.handle, self.position + size, self.size - size, self.base_offset)

    @property
    def fd(self) -> int:
        """For `os.sendfile`, where there is one; valid while the slice is."""
        return self.handle.fd

    def read_into(self, buffer: memoryview) -> int:
        """Copy the bytes into `buffer`, which must be large enough.  How many: fewer only if the log was
        truncated."""
        done = 0
        while done < self.size and (
            got := system.preadv(self.handle.fd, [buffer[done : self.size]], self.position + done)
        ):
            done += got
        return done

    def read(self) -> bytes:
        """The bytes, in a new object; fewer than announced only if the log was truncated."""
        data = system.pread(self.handle.fd, self.size, self.position)
        if len(data) == self.size:
            return data
        buffer = bytearray(self.size)
        return bytes(memoryview(buffer)[: self.read_into(memoryview(buffer))])
