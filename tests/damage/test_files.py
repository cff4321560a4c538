"""Whole files are cut short, grow, or go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage.blows import strike
from tests.damage.reading import SOAK, problems, wrong_rows
from tests.damage.regions import Region
from tests.damage.small_store import Original
from tests.damage.test_bytes import FEW, copy_of

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600 if SOAK else 120)]

# Path below the store, with the number of the file in its folder.
FILES = (
    ("commitlog", 0), ("commitlog", 1), ("commitlog", -1),
    ("consumequeue/orders/0", 0), ("consumequeue/orders/0", 1), ("consumequeue/orders/0", -1),
    ("consumequeue/SCHEDULE_TOPIC_XXXX/2", 0),
    ("consumequeue_ext/orders/0", 0), ("consumequeue_ext/orders/0", -1),
    ("index", 0), ("index", -1),
    ("checkpoint", None), ("rocketpy/tail", None), ("lock", None),
    ("config/topics.json", None), ("config/consumerOffset.json", None),
    ("config/topics.json.bak", None), ("config/consumerOffset.json.bak", None),
)  # fmt: skip
# A store without them is a store all the same.
UNMISSED = {
    ("commitlog", 0),  # looks as if retention had deleted it
    ("rocketpy/tail", None),  # Apache's broker makes none
    ("config/topics.json.bak", None),
    ("config/consumerOffset.json.bak", None),
}


def file_region(root: Path, place: str, number: int | None) -> Region:
    path = root / place
    if number is not None:
        path = sorted(path.iterdir())[number]
    return Region(f"file: {place} {number}", path.relative_to(root), 0, path.stat().st_size)


@pytest.mark.parametrize("kind", ["cut", "garbage", "delete"])
@pytest.mark.parametrize(("place", "number"), FILES)
@FEW
@given(seed=st.integers(0, 1 << 31))
def test_a_file_that_is_not_whole_is_reported_and_never_misread(
    original: Original, place: str, number: int | None, kind: str, seed: int
) -> None:
    with copy_of(original) as path:
        assert strike(path, file_region(path, place, number), kind, seed) is not None
        found = problems(path)
        assert found or (kind == "delete" and (place, number) in UNMISSED)
        assert wrong_rows(path, original) == []
