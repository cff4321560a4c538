"""Bytes of every kind change in place: verify reports it, and nobody reads a wrong message."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.damage.blows import strike
from tests.damage.reading import SOAK, problems, wrong_rows
from tests.damage.regions import OWNERS, Region, regions
from tests.damage.small_store import Original

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600 if SOAK else 120)]

IN_PLACE = ("bit", "bytes", "zeros")
FEW = settings(
    max_examples=50 if SOAK else 2,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
# Where another value is as good as the one that was written.
UNDEFINED = {
    "blank: rest",  # behind its size and magic number a blank record is whatever was there
    "checkpoint: master flushed",  # any place of the log will do
    "checkpoint: confirm offset",
    "checkpoint: logics offset",
    "last index: free",  # may be what an insert that died has left
    "config: topics.json",  # valid, but another name or number
    "config: topics.json.bak",
    "config: consumerOffset.json",
    "config: consumerOffset.json.bak",
}
UNDEFINED_IF_ZERO = {"checkpoint: physic time", "checkpoint: logics time", "checkpoint: index time"}


@contextmanager
def copy_of(original: Original) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="damage") as folder:
        yield Path(shutil.copytree(original.path, Path(folder) / "store"))


def is_undefined(region: Region, kind: str) -> bool:
    return region.name in UNDEFINED or (kind == "zeros" and region.name in UNDEFINED_IF_ZERO)


def test_every_region_has_an_owner_that_is_tested(original: Original) -> None:
    assert {region.owner for region in regions(original.path)} == set(OWNERS)


def test_the_store_is_sound_before(original: Original, unchecked: Original) -> None:
    for store in (original, unchecked):
        assert problems(store.path) == []
        assert wrong_rows(store.path, store) == []


@pytest.mark.parametrize("owner", OWNERS)
@FEW
@given(kind=st.sampled_from(IN_PLACE), seed=st.integers(0, 1 << 31))
def test_damage_is_reported_and_never_read(
    original: Original, owner: str, kind: str, seed: int
) -> None:
    for region in regions(original.path):
        if region.owner != owner:
            continue
        with copy_of(original) as path:
            if strike(path, region, kind, seed) is None:
                continue
            case = (region.name, kind, seed)
            found = problems(path)
            assert found or is_undefined(region, kind), case
            assert wrong_rows(path, original) == [], case


@pytest.mark.parametrize(
    "owner",
    [
        "newest record",
        pytest.param("first record", marks=pytest.mark.further),
        pytest.param("middle record", marks=pytest.mark.further),
    ],
)
@FEW
@given(kind=st.sampled_from(IN_PLACE), seed=st.integers(0, 1 << 31))
def test_damage_that_nothing_can_tell_still_raises_nothing_foreign(
    unchecked: Original, owner: str, kind: str, seed: int
) -> None:
    """Without record check sums a header may lie; reading must end all the same."""
    for region in regions(unchecked.path, checksums=False):
        if region.owner != owner:
            continue
        with copy_of(unchecked) as path:
            strike(path, region, kind, seed)
            problems(path)
            wrong_rows(path, unchecked)
