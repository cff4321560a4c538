"""The index: many entries at once and few by few make the same files, and all are found."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index import MessageIndex

HASHES = st.one_of(
    st.integers(0, 20), st.sampled_from([0, (1 << 31) - 1]), st.integers(0, (1 << 31) - 1)
)
# The keys of one message, and how much later than the one before it is stored.
ENTRIES = st.tuples(
    st.lists(HASHES, min_size=1, max_size=4), st.sampled_from([0, 1, 999, 1000, 5000, 1 << 42])
)
BEGIN_MS = 1_700_000_000_000


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@given(
    entries=st.lists(ENTRIES, min_size=1, max_size=30),
    slots=st.integers(1, 7),
    room=st.integers(2, 40),
    cuts=st.lists(st.integers(1, 40), max_size=4),
)
def test_many_entries_at_once_make_the_files_that_few_by_few_make(
    entries: list[tuple[list[int], int]], slots: int, room: int, cuts: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, disk = Path(name), Disk()
        by_one = MessageIndex(root / "one", slots, room, disk, writable=True)
        at_once = MessageIndex(root / "many", slots, room, disk, writable=True)
        hashes: list[int] = []
        offsets: list[int] = []
        times: list[int] = []
        now_ms = BEGIN_MS
        for number, (keys, later_ms) in enumerate(entries):
            now_ms = min(now_ms + later_ms, 5_000_000_000_000)
            same = np.ones(len(keys), np.int64)
            by_one.put(np.array(keys), 100 * number * same, now_ms * same)
            hashes += keys
            offsets += [100 * number] * len(keys)
            times += [now_ms] * len(keys)
        columns = [np.array(column, np.int64) for column in (hashes, offsets, times)]
        for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), len(hashes)], strict=True):
            at_once.put(*(column[first:last] for column in columns))
        assert files(root / "many" / "index") == files(root / "one" / "index")
        for key_hash in set(hashes):
            expected = sorted(o for o, h in zip(offsets, hashes, strict=True) if h == key_hash)
            assert sorted(offset for offset, _ in by_one.find(key_hash)) == expected
            assert sorted(offset for offset, _ in at_once.find(key_hash)) == expected
        missing = next(number for number in range(1 << 31) if number not in hashes)
        assert at_once.find(missing) == []
