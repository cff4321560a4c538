"""The bits of a group, and the maps that have them."""

from __future__ import annotations

import numpy as np

from rocketpy.broker_core.filters.bloom import BloomBits, map_size


def test_apaches_settings_give_112_bits_and_3_for_each_group() -> None:
    assert map_size() == (112, 3)


def test_bits_are_those_that_apache_calculates() -> None:
    bits = BloomBits.of_group("g", "t", map_bits=112, count=3)
    assert bits == BloomBits(112, (22, 87, 58))


def test_a_map_with_all_bits_is_a_hit_and_one_that_lacks_a_bit_is_none() -> None:
    maps = np.zeros((4, 14), np.uint8)
    maps[0, [2, 10, 7]] = 1 << 6, 1 << 7, 1 << 2  # bits 22, 87 and 58
    maps[1] = 0xFF
    maps[2] = maps[0]
    maps[2, 7] = 0
    assert BloomBits(112, (22, 87, 58)).are_set(maps).tolist() == [True, True, False, False]
