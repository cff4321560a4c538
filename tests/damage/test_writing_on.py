"""A damaged store is opened to write on: it works or is refused; nothing sound is lost unsaid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage.blows import KINDS, strike
from tests.damage.reading import SOAK
from tests.damage.regions import OWNERS, regions
from tests.damage.small_store import Original
from tests.damage.test_bytes import FEW, copy_of
from tests.damage.writing import missing_in_queues, silently_lost, write_on

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600 if SOAK else 120)]
LOG_OWNERS = ("first record", "middle record", "newest record", "blank", "log")


@pytest.mark.parametrize("is_crashed", [False, True], ids=["stopped", "crashed"])
@pytest.mark.parametrize("owner", OWNERS)
@FEW
@given(data=st.data())
def test_what_is_sound_is_kept_or_the_store_is_refused(
    original: Original, owner: str, is_crashed: bool, data: st.DataObject
) -> None:
    region = data.draw(st.sampled_from([r for r in regions(original.path) if r.owner == owner]))
    kind = data.draw(st.sampled_from([k for k in KINDS if k != "delete"]))
    seed = data.draw(st.integers(0, 1 << 31))
    with copy_of(original) as path:
        blow = strike(path, region, kind, seed)
        if blow is None:
            return
        if is_crashed:
            (path / "abort").write_text("1")
        sent = write_on(path)
        assert silently_lost(path, original, blow, sent) == []
        if owner in LOG_OWNERS and not is_crashed:
            assert missing_in_queues(path, original, blow) == []


@pytest.mark.parametrize("field", ["size", "body", "queue offset"])
def test_recovery_that_refuses_a_damaged_record_leaves_the_queues_alone(
    original: Original, field: str
) -> None:
    with copy_of(original) as path:
        (region,) = (r for r in regions(path) if r.name == f"middle record: {field}")
        blow = strike(path, region, "bit", seed=0)
        assert blow is not None
        (path / "abort").write_text("1")
        assert write_on(path) == []
        assert missing_in_queues(path, original, blow) == []


@pytest.mark.parametrize(
    ("field", "is_crashed"),
    [
        ("begin time", False),
        ("count", False),
        ("slots", False),
        ("entry 0", False),
        ("free", False),
        *((field, True) for field in ("begin time", "count", "slots", "entry 0", "free")),
    ],
)
def test_a_cut_index_file_is_refused_or_made_anew(
    original: Original, field: str, is_crashed: bool
) -> None:
    with copy_of(original) as path:
        (region,) = (r for r in regions(path) if r.name == f"last index: {field}")
        blow = strike(path, region, "cut", seed=0)
        assert blow is not None
        if is_crashed:
            (path / "abort").write_text("1")
        sent = write_on(path)
        assert silently_lost(path, original, blow, sent) == []


@pytest.mark.parametrize("field", ["end", "magic", "stored ms", "flushed"])
@pytest.mark.parametrize("kind", ["bit", "bytes", "zeros"])
def test_a_damaged_tail_loses_nothing(original: Original, field: str, kind: str) -> None:
    for seed in range(20 if SOAK else 3):
        with copy_of(original) as path:
            (region,) = (r for r in regions(path) if r.name == f"tail: {field}")
            blow = strike(path, region, kind, seed)
            if blow is not None:
                sent = write_on(path)
                assert silently_lost(path, original, blow, sent) == [], seed


@pytest.mark.parametrize("is_crashed", [False, True], ids=["stopped", "crashed"])
def test_a_tail_that_was_cut_is_made_anew(original: Original, is_crashed: bool) -> None:
    with copy_of(original) as path:
        (region,) = (r for r in regions(path) if r.name == "tail: end")
        blow = strike(path, region, "cut", seed=0)
        assert blow is not None
        if is_crashed:
            (path / "abort").write_text("1")
        sent = write_on(path)
        assert len(sent) == 2
        assert silently_lost(path, original, blow, sent) == []
