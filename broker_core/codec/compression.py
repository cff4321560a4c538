"""Message bodies that the sender compressed: zlib, LZ4 frames, ZSTD frames.

Few have LZ4 or ZSTD, so these are imported by the first message that does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from rocketpy.broker_core.codec.layout import COMPRESSION_MASK, SysFlag
from rocketpy.broker_core.errors import RecordError

_ZSTD_STEP = 256
ZLIB_LEVEL = 5  # what Apache's producer uses
MAX_BODY_BYTES = 256 << 20  # a bound on what a few hostile bytes may unfold to


def _inflate_zlib(stored: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    body = unpacker.decompress(stored, MAX_BODY_BYTES)
    if not unpacker.eof:
        raise ValueError("the zlib stream is cut short or unfolds to too much")
    return body


def _inflate_lz4(stored: bytes) -> bytes:
    import lz4.frame

    unpacker = lz4.frame.LZ4FrameDecompressor()
    body: bytes = unpacker.decompress(stored, max_length=MAX_BODY_BYTES)
    if not unpacker.eof:
        raise ValueError("the LZ4 frame is cut short or unfolds to too much")
    return body


def _deflate_lz4(body: bytes) -> bytes:
    import lz4.frame

    stored: bytes = lz4.frame.compress(body)
    return stored


def _inflate_zstd(stored: bytes) -> bytes:
    import zstandard

    try:
        return _unfolded_zstd(stored)
    except zstandard.ZstdError as cause:
        raise ValueError(str(cause)) from cause


def _unfolded_zstd(stored: bytes) -> bytes:
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    if zstandard.frame_content_size(stored) > MAX_BODY_BYTES:
        raise ValueError("the ZSTD frame unfolds to too much")
    body = bytearray()
    # In steps, so that the bound holds early: a few bytes may stand for a block of 128 KiB.
    for start in range(0, len(stored), _ZSTD_STEP):
        body += unpacker.decompress(stored[start : start + _ZSTD_STEP])
        if len(body) > MAX_BODY_BYTES:
            raise ValueError("the ZSTD frame unfolds to too much")
    if not unpacker.eof:
        raise ValueError("the ZSTD frame is cut short")
    return bytes(body)


def _deflate_zstd(body: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(body)


_INFLATE: dict[int, Callable[[bytes], bytes]] = {
    0: _inflate_zlib,  # clients before 5.0 name no codec
    SysFlag.ZLIB: _inflate_zlib,
    SysFlag.LZ4: _inflate_lz4,
    SysFlag.ZSTD: _inflate_zstd,
}
_DEFLATE: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "zlib": (SysFlag.ZLIB, lambda body: zlib.compress(body, ZLIB_LEVEL)),
    "lz4": (SysFlag.LZ4, _deflate_lz4),
    "zstd": (SysFlag.ZSTD, _deflate_zstd),
}
CODECS = tuple(_DEFLATE)


def inflate(stored: bytes, sys_flag: int) -> bytes:
    """Return the body as it was sent.

    Raises:
        RecordError: the bytes are not what the flag says, or unfold to over 256 MiB.
    """
    if not sys_flag & SysFlag.COMPRESSED:
        return stored
    inflate_one = _INFLATE.get(sys_flag & COMPRESSION_MASK)
    if inflate_one is None:
        raise RecordError(0, f"unknown body compression in sysFlag {sys_flag:#x}")
    try:
        return inflate_one(stored)
    except (zlib.error, RuntimeError, ValueError) as cause:
        raise RecordError(0, f"the compressed body cannot be unfolded: {cause}") from cause


def deflate(body: bytes, codec: str) -> tuple[bytes, int]:
    """Return the stored body and the sysFlag bits that say how it is compressed."""
    flag, compress = _DEFLATE[codec]
    return compress(body), int(SysFlag.COMPRESSED) | int(flag)
