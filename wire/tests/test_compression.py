"""Compression: every codec both ways, in the framings that are out there, and never past the cap."""

import gzip
import subprocess
import sys
from random import Random

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilogue.wire.compression import Codec, compress, decompress
from trilogue.wire.errors import MalformedMessage

COMPRESSING = [codec for codec in Codec if codec]
MIB = 1 << 20

each_codec = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name.lower())


def text(size: int, seed: int = 1) -> bytes:
    """Bytes that compress to about a third."""
    return bytes(Random(seed).choices(b"abcdefgh", k=size))


@given(st.binary(max_size=2000), st.integers(1, 200), st.sampled_from(Codec), st.booleans())
def test_what_is_compressed_inflates_to_what_it_was(data: bytes, times: int, codec: Codec, old_lz4: bool):
    packed = compress(codec, data * times, old_lz4=old_lz4)

    assert decompress(codec, packed, len(data * times), old_lz4=old_lz4) == data * times


@each_codec
@pytest.mark.parametrize("level", [1, 6, 9, 12])
def test_every_level_reads_back(codec: Codec, level: int):
    data = text(200_000)

    assert decompress(codec, compress(codec, data, level=min(level, 9) if codec is Codec.GZIP else level)) == data


@each_codec
@pytest.mark.parametrize("size", [0, 1, 32 << 10, (32 << 10) + 1, 64 << 10, (64 << 10) + 1, 300_000])
def test_blocks_meet_at_their_edges(codec: Codec, size: int):
    assert decompress(codec, compress(codec, text(size))) == text(size)


@each_codec
def test_what_cannot_be_compressed_is_kept_all_the_same(codec: Codec):
    noise = Random(1).randbytes(200_000)

    assert decompress(codec, compress(codec, noise)) == noise


@each_codec
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_will_do(codec: Codec, kind: type):
    assert decompress(codec, kind(compress(codec, kind(b"some bytes")))) == b"some bytes"


# The cap.


@each_codec
@pytest.mark.parametrize(
    "data", [b"x", text(5000), text(100_000), bytes(3 * MIB)], ids=["1", "5000", "100000", "3 MiB"]
)
def test_the_cap_is_the_largest_size_that_passes(codec: Codec, data: bytes):
    packed = compress(codec, data)

    assert decompress(codec, packed, len(data)) == data
    with pytest.raises(MalformedMessage, match="with room for"):
        decompress(codec, packed, len(data) - 1)


INFLATE = """
import resource, sys
from trilogue.wire.compression import Codec, compress, decompress
from trilogue.wire.errors import MalformedMessage

codec, packed = Codec(int(sys.argv[1])), bytes.fromhex(sys.argv[2]) * int(sys.argv[3])
decompress(codec, compress(codec, b""))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    outcome = len(decompress(codec, packed, 8 << 20))
except MalformedMessage:
    outcome = "refused"
print(outcome, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
"""In a process of its own, whose memory nothing else has stretched.  The cap is 8 MiB."""


def inflated_apart(codec: Codec, packed: bytes, times: int = 1) -> tuple[str, int]:
    """What came of it, and how many KiB of memory it took."""
    command = [sys.executable, "-c", INFLATE, str(int(codec)), packed.hex(), str(times)]
    outcome, grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return outcome, int(grown)


@each_codec
def test_a_gigabyte_in_disguise_takes_no_more_memory_than_the_cap_allows(codec: Codec):
    outcome, grown_kib = inflated_apart(codec, bytes(compress(codec, bytes(MIB))), times=1024)

    assert outcome == "refused"
    assert grown_kib < 32 << 10  # two rooms, and a window of the codec's own


def test_the_window_that_a_zstd_frame_asks_for_is_not_filled():
    outcome, grown_kib = inflated_apart(Codec.ZSTD, bytes.fromhex("28b52ffd 00 88 010000"))  # 128 MiB, for nothing

    assert outcome == "0"
    assert grown_kib < 32 << 10


def test_a_room_that_cannot_be_had_is_no_failure_of_the_disk():
    with pytest.raises(MemoryError, match=f"no room for {1 << 60} bytes"):
        decompress(Codec.GZIP, compress(Codec.GZIP, bytes(MIB)), 1 << 60)


def test_a_declared_size_is_not_believed():
    with pytest.raises(MalformedMessage, match="4294967295 bytes declared in 7, with room for"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00a", 1 << 40)


# Framings.


def test_snappy_is_framed_as_snappy_java_frames_it():
    packed = bytes(compress(Codec.SNAPPY, text(40_000)))

    assert packed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")
    first = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == text(40_000)[: 32 << 10]


def test_a_bare_block_of_snappy_is_read_too():
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(text(9000)))) == text(9000)


def test_streams_of_snappy_one_after_the_other_are_one():
    assert decompress(Codec.SNAPPY, bytes(compress(Codec.SNAPPY, b"one")) * 2) == b"oneone"


def test_members_of_gzip_one_after_the_other_are_one():
    assert decompress(Codec.GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_frames_of_zstd_one_after_the_other_are_one():
    packed = bytes(compress(Codec.ZSTD, b"one ")) + bytes(compress(Codec.ZSTD, b"two"))

    assert decompress(Codec.ZSTD, packed) == b"one two"


def test_lz4_is_written_in_independent_blocks_without_checksums():
    packed = compress(Codec.LZ4, text(100))

    assert packed[:7] == bytes.fromhex("04224d18 6040 82")


def test_lz4_is_read_with_linked_blocks_and_checksums():
    foreign = bytes(cramjam.lz4.compress(text(300_000)))

    assert foreign[4] & 0x20 == 0  # linked
    assert decompress(Codec.LZ4, foreign) == text(300_000)


@pytest.mark.parametrize("content_size", [False, True])
def test_a_wrong_header_checksum_of_lz4_passes_only_in_message_format_0(content_size: bool):
    frame = bytearray(compress(Codec.LZ4, b"some bytes"))
    if content_size:
        frame[4] |= 0x08
        frame[6:6] = (10).to_bytes(8, "little")
    frame[14 if content_size else 6] = 0x1A

    assert decompress(Codec.LZ4, frame, old_lz4=True) == b"some bytes"
    with pytest.raises(MalformedMessage):
        decompress(Codec.LZ4, frame)


def test_lz4_for_message_format_0_has_the_wrong_header_checksum_it_always_had():
    packed = compress(Codec.LZ4, b"some bytes", old_lz4=True)

    assert packed[:7] == bytes.fromhex("04224d18 6040 1a")  # a frame of kafka-clients begins so (test_legacy.py)


# Bad bytes.


def cuts(packed: bytes) -> list[bytes]:
    return [packed[:cut] for cut in (*range(60), *range(60, len(packed), 997), len(packed) - 1)]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_every_cut_is_refused(codec: Codec):
    for cut in cuts(bytes(compress(codec, text(70_000)))):
        with pytest.raises(MalformedMessage):
            decompress(codec, cut)


def test_a_cut_of_snappy_is_refused_unless_it_falls_between_blocks():
    packed = bytes(compress(Codec.SNAPPY, text(70_000)))
    between = 20 + int.from_bytes(packed[16:20], "big")

    assert decompress(Codec.SNAPPY, packed[:between]) == text(70_000)[: 32 << 10]
    for cut in cuts(packed):
        if len(cut) not in (16, between):
            with pytest.raises(MalformedMessage):
                decompress(Codec.SNAPPY, cut)


@each_codec
@pytest.mark.parametrize("junk", [b"", b"junk", bytes(100), b"\xff" * 100])
def test_junk_is_refused(codec: Codec, junk: bytes):
    with pytest.raises(MalformedMessage):
        decompress(codec, junk)


@pytest.mark.parametrize(
    "hexed",
    [
        "82534e4150505900",
        "82534e4150505900 00000001 000000",
        "82534e4150505900 00000001 00000001 000000",
        "82534e4150505900 00000001 00000001 ffffffff",
        "82534e4150505900 00000001 00000001 00000002 00",
    ],
)
def test_broken_snappy_framing_is_refused(hexed: str):
    with pytest.raises(MalformedMessage):
        decompress(Codec.SNAPPY, bytes.fromhex(hexed))


def inflate_hostile(seed: int, many: int) -> int:
    """How many of so many damaged streams were refused; anything but MalformedMessage is raised."""
    random = Random(seed)
    tame = [
        (codec, bytes(compress(codec, data)))
        for codec in COMPRESSING
        for data in (b"", b"abc" * 9, text(9000), bytes(MIB))
    ]
    tame.append((Codec.LZ4, bytes(cramjam.lz4.compress(text(9000)))))
    tame.append((Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(text(9000)))))
    refused = 0
    for _ in range(many):
        codec, packed = random.choice(tame)
        hurt = bytearray(packed)
        for _ in range(random.choice([1, 1, 2, 5])):
            at = random.randrange(min(len(hurt), random.choice([20, 100, MIB])))
            match random.randrange(3):
                case 0:
                    hurt[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
                case 1:
                    hurt[at:at] = random.randbytes(random.randrange(9))
                case _ if at:
                    del hurt[at:]
        try:
            assert len(decompress(codec, hurt, 2 * MIB, old_lz4=random.random() < 0.3)) <= 2 * MIB
        except MalformedMessage:
            refused += 1
    return refused


def test_hostile_streams_are_inflated_or_refused():
    assert inflate_hostile(seed=1, many=3000) > 1500


@pytest.mark.slow
def test_very_many_hostile_streams_are_inflated_or_refused():
    inflate_hostile(seed=2, many=300_000)
