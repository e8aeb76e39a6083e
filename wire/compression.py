"""gzip, snappy, lz4 and zstd behind two functions, as Kafka's clients write and read them.

What comes from the network is inflated into room that is set aside beforehand and never grows: a few bytes
that claim to be a gigabyte fill the room and are refused.  Whatever is wrong with compressed bytes,
`MalformedMessage` is what it raises.

    snappy  is written in the framing of snappy-java ("xerial": a header, then blocks behind their lengths),
            and read with or without it: librdkafka, for one, writes a single bare block
    lz4     is written as frames of independent blocks, the only ones the Java client reads; read as any frame
    gzip    may have several members, zstd several frames; their content is joined
"""

from enum import IntEnum
from functools import partial
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct

from trilogue.wire.errors import MalformedMessage

Bytes = bytes | bytearray | memoryview

INFLATED_CAP = 256 << 20
"""Unless told otherwise.  Far above any honest batch (they are about 1 MiB compressed, and rarely inflate to
a hundred times that), and small enough to be had once or twice at the same time."""

FIRST_ROOM_RATIO, FIRST_ROOM_MORE = 8, 4096
"""Honest batches inflate to less than this, so the large room is seldom opened."""


_UNTOUCHED = b"nothing reached the end of this room"
"""Stands at the end of a room.  Who overwrote it and failed had too little of it, others were given rubbish; the words
of the error would say so too, but may change.  Content that ends like this is called rubbish, and refused as well."""


class TooLarge(MalformedMessage):
    """It inflates to more than there is room for."""


class Codec(IntEnum):
    """The numbers are those in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Bytes, *, level: int | None = None, old_lz4: bool = False) -> Bytes:
    """`level` means what it means in Kafka's `compression.*.level`; snappy has none.

    `old_lz4` computes the header checksum as wrongly as readers of message format 0 expect it (KAFKA-3160).
    """
    import cramjam

    match codec:
        case Codec.GZIP:
            return memoryview(cramjam.gzip.compress(data, level=6 if level is None or level < 0 else level))
        case Codec.SNAPPY:
            return _xerial(memoryview(data))
        case Codec.LZ4:
            return _lz4_frame(memoryview(data), level, _LZ4_HEADER_OLD if old_lz4 else _LZ4_HEADER)
        case Codec.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=3 if level is None else level))
    return data


def decompress(
    codec: Codec, data: Bytes, cap: int = INFLATED_CAP, *, old_lz4: bool = False, room: bytearray | None = None
) -> memoryview:
    """What `data` inflates to, if that is no more than `cap` bytes.

    `room` is where it may go instead of into memory of its own, and no more than fits there; it is valid until the
    next is put there.  Memory that was just had from the system costs as much as inflating into it.
    `old_lz4` takes frames whose header checksum is wrong, as in message format 0 (KAFKA-3160).
    """
    match codec:
        case Codec.NONE:
            return memoryview(data)
        case Codec.SNAPPY:
            return _unsnap(memoryview(data), cap)
        case Codec.LZ4 if old_lz4:
            data = _with_true_checksum(data)
    return _inflate(codec, data, cap) if room is None else _inflate_into(codec, data, room)


def _inflate(codec: Codec, data: Bytes, cap: int) -> memoryview:
    import cramjam

    into = getattr(cramjam, codec.name.lower()).decompress_into
    first = min(cap, len(data) * FIRST_ROOM_RATIO + FIRST_ROOM_MORE)
    if first < cap:
        try:
            small = bytearray(first)
            return memoryview(small)[: into(data, small)]
        except cramjam.DecompressionError:
            pass  # too little room, or broken: the large room will tell
    return _inflate_into(codec, data, bytearray(cap) if first == cap else _large_room(cap))


def _inflate_into(codec: Codec, data: Bytes, room: bytearray | mmap) -> memoryview:
    import cramjam

    name, size = codec.name.lower(), len(room)
    tail = _UNTOUCHED[: min(size, len(_UNTOUCHED))]
    room[size - len(tail) : size] = tail
    try:
        return memoryview(room)[: getattr(cramjam, name).decompress_into(data, room)]
    except cramjam.DecompressionError as error:
        if room[size - len(tail) : size] == tail:
            raise MalformedMessage(f"{name}, with room for {size} bytes: {error}") from None
        raise TooLarge(f"{name}, with room for {size} bytes: {error}") from None


def _large_room(size: int) -> mmap:
    """Memory whose pages cost nothing until they are written to."""
    try:
        return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError as error:  # which would be taken for a failure of the disk
        raise MemoryError(f"no room for {size} bytes") from error


_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
"""Two versions follow the magic: the writer's, and the oldest that can read it."""
_XERIAL_BLOCK = 32 << 10
_SNAPPY_RATIO = 22
"""The most a byte of snappy can stand for: three bytes copy sixty-four."""
_LENGTH = Struct(">i")


def _xerial(data: memoryview) -> bytes:
    import cramjam

    parts: list[Bytes] = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK):
        block = memoryview(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _unsnap(data: memoryview, cap: int) -> memoryview:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _unsnap_block(data, cap)
    out = bytearray()
    at = len(_XERIAL_HEADER)
    while at != len(data):
        if len(data) - at < _LENGTH.size:
            raise MalformedMessage(f"snappy: a block's length takes 4 bytes, {max(0, len(data) - at)} left")
        if data[at : at + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            at += len(_XERIAL_HEADER)  # snappy-java reads streams that were simply put one after the other
            continue
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if not 0 <= size <= len(data) - at:
            raise MalformedMessage(f"snappy: a block of {size} bytes, {len(data) - at} left")
        out += _unsnap_block(data[at : at + size], cap - len(out))
        at += size
    return memoryview(out)


def _unsnap_block(block: memoryview, cap: int) -> memoryview:
    import cramjam

    try:
        declared = cramjam.snappy.decompress_raw_len(block)
        if declared > len(block) * _SNAPPY_RATIO:
            raise MalformedMessage(f"snappy: {declared} bytes declared in {len(block)}, with room for {cap}")
        if declared > cap:
            raise TooLarge(f"snappy: {declared} bytes declared, with room for {cap}")
        return memoryview(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise MalformedMessage(str(error)) from None


# An lz4 frame: magic, two bytes of flags, their checksum; blocks behind their lengths; a length of zero.
# The flags say version 1, independent blocks without checksums (0x60), of at most 64 KiB (0x40).
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_FLAGS = b"\x60\x40"
_LZ4_BLOCK = 64 << 10
_LZ4_LENGTH = Struct("<I")
_LZ4_STORED = 0x8000_0000
"""In a block's length: it would not have become smaller, and is there as it was."""
_LZ4_DEFAULT_LEVEL = 9
"""Kafka's default is this number, and means the quick compressor, not level 9 of the thorough one."""


def _lz4_frame(data: memoryview, level: int | None, header: bytes) -> bytes:
    import cramjam

    thorough = level is not None and level != _LZ4_DEFAULT_LEVEL
    pack = partial(
        cramjam.lz4.compress_block,
        mode="high_compression" if thorough else "default",
        compression=level if thorough else None,
        store_size=False,
    )
    parts: list[Bytes] = [header]
    for at in range(0, len(data), _LZ4_BLOCK):
        raw = data[at : at + _LZ4_BLOCK]
        block = memoryview(pack(raw))
        if len(block) < len(raw):
            parts += (_LZ4_LENGTH.pack(len(block)), block)
        else:
            parts += (_LZ4_LENGTH.pack(len(raw) | _LZ4_STORED), raw)
    parts.append(_LZ4_LENGTH.pack(0))
    return b"".join(parts)


def _with_true_checksum(frame: Bytes) -> Bytes:
    """The frame with the header checksum that its flags should have."""
    flags_end = 6 + (8 if len(frame) > 4 and frame[4] & 0x08 else 0)  # 0x08: the content's size follows
    if len(frame) <= flags_end:
        return frame  # too short to be anything; refused where it is read
    fixed = bytearray(frame)
    fixed[flags_end] = _header_checksum(bytes(frame[4:flags_end]))
    return fixed


def _header_checksum(short: bytes) -> int:
    """The second byte of xxHash-32 of less than 16 bytes, which is all that lz4's headers need."""
    bits = 0xFFFF_FFFF
    mixed = 374761393 + len(short)
    whole = len(short) & ~3
    for (word,) in _LZ4_LENGTH.iter_unpack(short[:whole]):
        mixed = (mixed + word * 3266489917) & bits
        mixed = (mixed << 17 | mixed >> 15) * 668265263 & bits
    for byte in short[whole:]:
        mixed = (mixed + byte * 374761393) & bits
        mixed = (mixed << 11 | mixed >> 21) * 2654435761 & bits
    mixed = (mixed ^ mixed >> 15) * 2246822519 & bits
    mixed = (mixed ^ mixed >> 13) * 3266489917 & bits
    return (mixed ^ mixed >> 16) >> 8 & 0xFF


_LZ4_HEADER = _LZ4_MAGIC + _LZ4_FLAGS + bytes([_header_checksum(_LZ4_FLAGS)])
_LZ4_HEADER_OLD = _LZ4_MAGIC + _LZ4_FLAGS + bytes([_header_checksum(_LZ4_MAGIC + _LZ4_FLAGS)])
