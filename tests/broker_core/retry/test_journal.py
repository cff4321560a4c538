"""The journal of replays: one holder, and what is under way survives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rocketpy.broker_core.errors import MetadataError, ReplayRunningError
from rocketpy.broker_core.retry.journal import ReplayChunk, locked_journal, read_journal
from rocketpy.broker_core.storage.layout import REPLAYS

CHUNK = ReplayChunk(
    run_id="r", command="c", number=3, to=None, at_ms=5, ranges={"0": [[1, 3], [7, 8]]}
)


def test_positions_are_kept_as_ranges() -> None:
    ranges = ReplayChunk.ranges_of(np.array([0, 0, 1, 0]), np.array([1, 2, 9, 7]))
    assert ranges == {"0": [[1, 3], [7, 8]], "1": [[9, 10]]}
    assert {queue: at.tolist() for queue, at in CHUNK.positions().items()} == {0: [1, 2, 7]}


def test_nothing_is_known_of_a_group_that_never_replayed(path: Path) -> None:
    assert read_journal(path, "g") is None


def test_what_is_under_way_is_found_by_the_next_holder(path: Path) -> None:
    with locked_journal(path, "g", "elsewhere") as journal:
        journal.begin(CHUNK)
        first = journal.content
    with locked_journal(path, "g", None) as journal:
        assert journal.content == first == read_journal(path, "g")
        assert (journal.content.audit, journal.content.pending) == ("elsewhere", CHUNK)
        journal.done()
    known = read_journal(path, "g")
    assert known is not None
    assert (known.pending, known.id) == (None, first.id)


def test_a_group_has_one_replay_at_a_time(path: Path) -> None:
    with (
        locked_journal(path, "g", None),
        locked_journal(path, "other", None),
        pytest.raises(ReplayRunningError, match="'g' are being replayed"),
        locked_journal(path, "g", None),
    ):
        pass
    with locked_journal(path, "g", None):
        pass


@pytest.mark.parametrize("text", ["", "{}", '{"audit": null, "pending": 7}'])
def test_a_damaged_journal_is_never_taken_for_none(path: Path, text: str) -> None:
    (path / REPLAYS).mkdir(parents=True)
    (path / REPLAYS / "g").write_text(text)
    with pytest.raises(MetadataError, match="replayed twice"):
        read_journal(path, "g")
