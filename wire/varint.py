"""The variable-length integers inside records: seven bits to a byte, signs folded in (zigzag).

Hot loops read the first byte themselves and come here only for what is longer: `SHORT[byte]` is the value of
a byte below 0x80, and `rest` reads on from a first byte that said "more".
"""

from typing import Final

from trilogue.wire.errors import MalformedMessage

INT_BYTES = 5
LONG_BYTES = 10

SHORT: Final = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))

_ENCODED: Final = tuple(bytes([byte]) for byte in range(0x80))


def read(data: memoryview, at: int) -> tuple[int, int]:
    """The int at `at`, and where it ends.  IndexError past the end."""
    first = data[at]
    return (SHORT[first], at + 1) if first < 0x80 else rest(data, at + 1, first)


def rest(data: memoryview, at: int, first: int, most: int = INT_BYTES) -> tuple[int, int]:
    """The value that began with `first` and goes on at `at`, and where it ends.  IndexError past the end.

    Bits above the width of the type are dropped, as Java's shifts drop them.
    """
    folded = first & 0x7F
    shift = 7
    for position in range(at, at + most - 1):
        byte = data[position]
        folded |= (byte & 0x7F) << shift
        if byte < 0x80:
            folded &= 0xFFFF_FFFF if most == INT_BYTES else 0xFFFF_FFFF_FFFF_FFFF
            return (folded >> 1) ^ -(folded & 1), position + 1
        shift += 7
    raise MalformedMessage(f"a varint of more than {most} bytes")


def encode(value: int) -> bytes:
    folded = value << 1 if value >= 0 else ~(value << 1)
    if folded < 0x80:
        return _ENCODED[folded]
    if folded < 0x4000:
        return bytes((folded & 0x7F | 0x80, folded >> 7))
    out = bytearray()
    while folded >= 0x80:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)
    return bytes(out)
