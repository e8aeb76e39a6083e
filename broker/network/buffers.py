"""Memory for what is received."""

RECEIVE_BYTES = 128 * 1024
"""What is read at once.  With 16 KiB, produce fell to 0.7x."""

SPARE_BUFFERS = 8
SPARE_BYTES = 4 << 20
"""Large frames need buffers of their own; a few of those are kept, warm, for the next."""


class Spares:
    """Buffers that connections have done with."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def copy(self, data: memoryview) -> bytearray:
        """A buffer that begins with this."""
        if self._buffers and len(data) <= len(self._buffers[-1]):
            buffer = self._buffers.pop()
            buffer[: len(data)] = data
            return buffer
        return bytearray(data)

    def put(self, buffer: bytearray) -> None:
        if RECEIVE_BYTES <= len(buffer) <= SPARE_BYTES and len(self._buffers) < SPARE_BUFFERS:
            self._buffers.append(buffer)
