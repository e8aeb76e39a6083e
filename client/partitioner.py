"""Which partition a key belongs to: as Kafka's Java clients choose, so that theirs and ours meet."""

_M, _SEED = 0x5BD1E995, 0x9747B28C
_32 = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's murmur2, as a number without sign."""
    h = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _32
        k = (k ^ k >> 24) * _M & _32
        h = h * _M & _32 ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _32
    h = (h ^ h >> 13) * _M & _32
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions
