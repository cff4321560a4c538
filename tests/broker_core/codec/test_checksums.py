"""Check sums of records are compared several at a time, and find what each alone would find."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from rocketpy.broker_core.codec.checksums import match
from rocketpy.broker_core.codec.draft import checksum_property
from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE

_RANDOM = np.random.default_rng(seed=7)


def sealed(*sizes: int) -> list[bytes]:
    bodies = [_RANDOM.bytes(size) for size in sizes]
    return [body + checksum_property(body) for body in bodies]


def is_match(records: list[bytes], data: bytes | None = None) -> bool:
    bounds = np.cumsum([0, *map(len, records)])
    return match(np.frombuffer(data or b"".join(records), np.uint8), bounds)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 11])
def test_sound_records_match_whatever_their_number(count: int) -> None:
    for _ in range(20):  # so that highest bits of all kinds are met
        assert is_match(sealed(*_RANDOM.integers(1, 700, count).tolist()))


def test_records_that_begin_after_other_bytes_match() -> None:
    records = sealed(30, 300, 3)
    bounds = np.cumsum([7, *map(len, records)])
    assert match(np.frombuffer(b"7 bytes" + b"".join(records) + b"more", np.uint8), bounds)


def test_records_that_are_too_large_to_go_together_match() -> None:
    assert is_match(sealed(100, 5_000, 70_000, 3))


@pytest.mark.parametrize("sizes", [(40,), (12, 25), (9, 4, 30, 8), (5, 16, 2, 7, 11), (3, 2_500)])
def test_any_flipped_bit_is_found(sizes: tuple[int, ...]) -> None:
    records = sealed(*sizes)
    sound = b"".join(records)
    for bit in range(0, 8 * len(sound), 1 if len(sound) < 500 else 7):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        assert not is_match(records, bytes(damaged)), bit


def test_records_in_another_order_are_found() -> None:
    records = sealed(20, 20, 20, 20)
    bodies = [record[:-CHECKSUM_SIZE] for record in records]
    sums = [record[-CHECKSUM_SIZE:] for record in records]
    assert not is_match([body + sum_ for body, sum_ in zip(bodies, sums[::-1], strict=True)])


def test_digits_that_mean_the_same_number_by_overflow_are_found() -> None:
    body = next(body for number in range(99) if zlib.crc32(body := b"%d" % number) < 1 << 31)
    sound = checksum_property(body)
    overflowed = f"{zlib.crc32(body) + (1 << 32):010d}"[::-1].encode()
    assert is_match([body + sound])
    assert not is_match([body + sound[:-11] + overflowed + sound[-1:]])
