"""The bit maps that Apache's broker keeps beside a queue: which SQL groups want a message.

Each group has some bits of the map, the same for every message of a topic, and the broker sets all
of them for a message that passes the group's filter. Groups may share bits: a message that has them
may still not pass, one that lacks a bit does not pass. Bit n is bit n % 8 of byte n / 8, counted
from the least significant one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mmh3
import numpy as np
import numpy.typing as npt

_WORD = 0xFFFFFFFF
# The settings of Apache's broker: maxErrorRateOfBloomFilter, expectConsumerNumUseFilter.
ERROR_PERCENT, EXPECTED_GROUPS = 20, 32


@dataclass(frozen=True, slots=True)
class BloomBits:
    """The bits of one group."""

    map_bits: int
    positions: tuple[int, ...]

    @classmethod
    def of_group(cls, group: str, topic: str, *, map_bits: int, count: int) -> BloomBits:
        """Return the bits of a group on a topic, in a map of a given size."""
        whole = mmh3.hash64(f"{group}#{topic}".encode(), signed=False)[0]
        low, high = whole & _WORD, whole >> 32
        hashes = ((low + number * high) & _WORD for number in range(1, count + 1))
        # As BloomFilter#calcBitPositions: a negative int has its bits flipped.
        positive = (each ^ _WORD if each >> 31 else each for each in hashes)
        return cls(map_bits, tuple(each % map_bits for each in positive))

    def are_set(self, maps: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Return in which maps (a row of bytes each) all the bits are set."""
        hits = np.ones(len(maps), bool)
        for position in self.positions:
            hits &= (maps[:, position // 8] >> position % 8 & 1).astype(bool)
        return hits


@dataclass(frozen=True, slots=True)
class RegisteredBits:
    """The bits of a group, and the store times of the messages whose maps are of its filter."""

    bits: BloomBits
    after_ms: int
    until_ms: int

    def exclude(
        self, stored_ms: npt.NDArray[np.int64], maps: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.bool_]:
        """Return which messages surely do not pass the group's filter."""
        is_covered = (stored_ms > self.after_ms) & (stored_ms <= self.until_ms)
        return is_covered & ~self.bits.are_set(maps)


def map_size(error_percent: int = ERROR_PERCENT, groups: int = EXPECTED_GROUPS) -> tuple[int, int]:
    """Return how many bits a map has, and how many of them a group, for a broker's settings."""
    error_rate = error_percent / 100
    count = math.ceil(math.log(error_rate) / math.log(0.5))
    bits = math.ceil(groups * math.log2(1 / error_rate) * math.log2(math.e))
    return 8 * math.ceil(bits / 8), count
