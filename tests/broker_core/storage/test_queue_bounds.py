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


def counted_bounds(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> tuple[QueueBounds, list[int]]:
    """Return a queue, and a list that grows whenever its range is looked up."""
    bounds, asked = QueueBounds(store._store.parts, "t", 0), list[int]()
    ask = bounds.range

    def counted() -> Range:
        asked.append(1)
        return ask()

    monkeypatch.setattr(bounds, "range", counted)
    return bounds, asked


def test_a_recent_range_is_asked_for_again_after_a_while(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.send("t", "x")
    bounds, asked = counted_bounds(store, monkeypatch)
    for now_s in (100.0, 100.01, 100.02, 101.0, 101.01):
        with monkeypatch.context() as patch:
            patch.setattr("time.monotonic", partial(float, now_s))
            assert bounds.recent_range() == (0, 1)
    assert len(asked) == 2


def test_a_noted_range_ends_where_the_queue_does_and_is_looked_up_once(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.send("t", "x")
    bounds, asked = counted_bounds(store, monkeypatch)
    for count, now_s in ((1, 100.0), (2, 160.0), (3, 699.0), (4, 701.0)):
        with monkeypatch.context() as patch:
            patch.setattr("time.monotonic", partial(float, now_s))
            assert bounds.noted_range() == (0, count)
        store.send("t", "x")
    assert len(asked) == 2


def test_a_noted_range_is_new_as_soon_as_others_appended(path: Path, store: rocketpy.Store) -> None:
    with rocketpy.open(path, read_only=True) as other:
        bounds = QueueBounds(other._store.parts, "t", 0)
        for count in range(1, 4):
            store.send("t", "x")
            assert bounds.noted_range() == (0, count) == bounds.noted_range()


def test_a_noted_range_is_forgotten_with_its_topic(store: rocketpy.Store) -> None:
    bounds = QueueBounds(store._store.parts, "t", 0)
    for count in (3, 1):
        for _ in range(count):
            store.send("t", "x", queue_id=0)
        assert bounds.noted_range() == (0, count)
        store.delete_topic("t")
        store.create_topic("t", 1)
    assert bounds.noted_range() == (0, 0)
