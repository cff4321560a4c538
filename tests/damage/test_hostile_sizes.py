"""A length that claims gigabytes takes no memory: what does not fit is refused unread."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
from tests.damage.reading import problems, wrong_rows
from tests.damage.regions import regions
from tests.damage.small_store import Original
from tests.damage.test_bytes import copy_of

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]

HUGE = {2: b"\x7f\xff", 1: b"\xff", 4: b"\x7f\xff\xff\xf0", 8: b"\x7f\xff\xff\xff\xff\xff\xff\xf0"}
MOST_BYTES = 32 << 20
LENGTHS = (
    "first record: size", "first record: body length", "first record: topic length",
    "middle record: properties length", "middle record: queue offset", "newest record: size",
    "blank: size", "middle entry: size", "middle entry: physical offset", "last entry: size",
    "ext unit: size", "ext unit: map size", "middle entry: tag code",
    "last index: count", "full index: count", "last index entry last: previous",
    "last index entry 1: physical offset", "tail: end", "tail: flushed",
)  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
def test_a_huge_length_takes_no_memory(original: Original, name: str) -> None:
    with copy_of(original) as path:
        (region,) = (region for region in regions(path) if region.name == name)
        data = bytearray((path / region.path).read_bytes())
        data[region.start : region.start + region.size] = HUGE[region.size]
        (path / region.path).write_bytes(data)
        before = pa.default_memory_pool().max_memory()
        tracemalloc.start()
        try:
            assert problems(path) != []
            assert wrong_rows(path, original) == []
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert taken < MOST_BYTES
        assert pa.default_memory_pool().max_memory() - before < MOST_BYTES
