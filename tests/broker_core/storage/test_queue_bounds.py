"""The range of a queue that is asked for again and again: cheap, and never old for long."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.storage.queue_bounds import QueueBounds
from rocketpy.broker_core.storage.recent_ranges import Range


def test_a_recent_range_is_new_as_soon_as_somebody_appended(
    path: Path, store: rocketpy.Store
) -> None:
    with rocketpy.open(path, read_only=True) as other:
        bounds = QueueBounds(other._store.parts, "t", 0)
        for count in range(1, 4):
            store.send("t", "x")
            assert bounds.recent_range() == (0, count) == bounds.recent_range()


def test_a_recent_range_is_asked_for_again_after_a_while(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.send("t", "x")
    bounds, asked = QueueBounds(store._store.parts, "t", 0), list[int]()
    ask = bounds.range

    def counted() -> Range:
        asked.append(1)
        return ask()

    monkeypatch.setattr(bounds, "range", counted)
    for now_s in (100.0, 100.01, 100.02, 101.0, 101.01):
        with monkeypatch.context() as patch:
            patch.setattr("time.monotonic", partial(float, now_s))
            assert bounds.recent_range() == (0, 1)
    assert len(asked) == 2
