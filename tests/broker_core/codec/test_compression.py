"""Compressed bodies, and bodies that would unfold to too much."""

from __future__ import annotations

import resource
import zlib

import lz4.frame
import pytest
import zstandard

from rocketpy.broker_core.codec import compression
from rocketpy.broker_core.codec.compression import CODECS, deflate, inflate
from rocketpy.broker_core.errors import RecordError

BODY = b"again and " * 100
LIMIT = 1 << 20


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("body", [BODY, b"", b"x"])
def test_what_was_folded_is_unfolded(codec: str, body: bytes) -> None:
    stored, flag = deflate(body, codec)
    assert inflate(stored, flag) == body


@pytest.mark.parametrize(("codec", "flag"), [("zlib", 0x301), ("lz4", 0x101), ("zstd", 0x201)])
def test_the_flag_names_the_codec(codec: str, flag: int) -> None:
    assert deflate(b"x", codec)[1] == flag


@pytest.mark.parametrize(
    ("codec", "magic"),
    [("zlib", b"\x78\x5e"), ("lz4", b"\x04\x22\x4d\x18"), ("zstd", b"\x28\xb5\x2f\xfd")],
)
def test_stored_bodies_begin_as_apaches_do(codec: str, magic: bytes) -> None:
    assert deflate(b"x", codec)[0].startswith(magic)


def test_a_body_without_the_flag_is_left_alone() -> None:
    assert inflate(b"\x78\x5e", 0x300) == b"\x78\x5e"


def test_a_codec_of_zero_means_zlib() -> None:
    assert inflate(zlib.compress(BODY), 0x1) == BODY


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(RecordError, match="unknown body compression in sysFlag 0x401"):
        inflate(b"x", 0x401)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("wrong", [b"", b"x", b"\0" * 20])
def test_bytes_that_are_not_compressed_are_refused(codec: str, wrong: bytes) -> None:
    with pytest.raises(RecordError, match="cannot be unfolded"):
        inflate(wrong, deflate(b"", codec)[1])


@pytest.mark.parametrize("codec", CODECS)
def test_a_body_cut_short_is_refused(codec: str) -> None:
    stored, flag = deflate(BODY, codec)
    for size in range(len(stored)):
        with pytest.raises(RecordError):
            inflate(stored[:size], flag)


@pytest.mark.parametrize("codec", CODECS)
def test_a_body_of_the_largest_size_is_unfolded(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "MAX_BODY_BYTES", LIMIT)
    stored, flag = deflate(bytes(LIMIT), codec)
    assert inflate(stored, flag) == bytes(LIMIT)


def _bomb(codec: str) -> bytes:
    """64 MiB of zeros, without a note of that size where the codec allows it."""
    size = 64 << 20
    if codec == "lz4":
        return bytes(lz4.frame.compress(bytes(size), store_size=False))
    if codec == "zstd":
        packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
        return packer.compress(bytes(size)) + packer.flush()
    return zlib.compress(bytes(size), 9)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_before_it_fills_memory(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb, flag = _bomb(codec), deflate(b"", codec)[1]
    monkeypatch.setattr(compression, "MAX_BODY_BYTES", LIMIT)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RecordError, match="cannot be unfolded"):
        inflate(bomb, flag)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 48 << 10


def test_a_frame_that_announces_too_much_is_refused_at_once() -> None:
    header = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little")
    with pytest.raises(RecordError, match="too much"):
        inflate(header + b"\x01\0\0", 0x201)


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_behind_the_end_of_a_body_do_not_matter(codec: str) -> None:
    stored, flag = deflate(BODY, codec)
    assert inflate(stored + b"more", flag) == BODY
