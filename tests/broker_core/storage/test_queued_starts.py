"""Queues tell a walk of the log where records begin; it finds the same whatever they say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage import queued_starts
from rocketpy.broker_core.storage.layout import CONSUME_QUEUE
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.published import walk
from rocketpy.broker_core.storage.queued_starts import QueuedStarts

TOPICS, MOST = ("a", "b"), 7


@dataclass
class Asked:
    """Asks queues for a walk, and keeps how many records were told each time."""

    parts: StoreParts
    counts: list[int] = field(default_factory=list)
    _told: QueuedStarts = field(init=False)

    def __post_init__(self) -> None:
        self._told = QueuedStarts(self.parts)

    def __call__(self, position: int, end: int, most: int) -> Ints:
        found = self._told.following(position, end, most)
        self.counts.append(len(found))
        return found


@pytest.fixture
def store(path: Path, small: rocketpy.StoreConfig) -> Iterator[rocketpy.Store]:
    """Messages of many sizes, of two topics by turns, in several files of the log."""
    with rocketpy.open(path, config=small) as store:
        for topic in TOPICS:
            store.create_topic(topic, queues=3)
        for number in range(60):
            bodies = ["x" * (number * 37 % 300 + extra) for extra in range(3)]
            store.append(TOPICS[number % 2], pa.table({"body": bodies}))
        yield store


def begins(parts: StoreParts, told: Asked | None, start: int = 0) -> list[int]:
    return [
        place
        for segment in walk(parts, start, most=MOST, told=told)
        if segment.block is not None
        for place in segment.physical_offsets().tolist()
    ]


@pytest.mark.parametrize("window", [1, 700, 64 << 20])
def test_all_records_are_told_in_the_order_of_the_log(
    window: int, store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_starts, "_WINDOW_BYTES", window)
    parts = store._store.parts
    expected, asked = begins(parts, None), Asked(parts)
    assert len(expected) == 180
    assert len(parts.log.files.starts()) > 2
    assert begins(parts, asked) == expected
    assert sum(asked.counts) == 180
    later = Asked(parts)
    assert begins(parts, later, expected[100]) == expected[100:]
    assert sum(later.counts) == 80


def test_a_queue_that_lacks_records_makes_it_give_up(store: rocketpy.Store) -> None:
    parts = store._store.parts
    expected = begins(parts, None)
    shutil.rmtree(parts.root / CONSUME_QUEUE / "b")
    parts.queues.forget()
    asked = Asked(parts)
    assert begins(parts, asked) == expected
    assert asked.counts[0] == MOST
    assert not any(asked.counts[1:])


def test_wrong_entries_lead_nowhere(store: rocketpy.Store) -> None:
    parts = store._store.parts
    expected = begins(parts, None)
    for queue_id, name, by in ((0, "f0", 1), (1, "f1", 100), (2, "f0", -9_000)):
        for file in (parts.root / CONSUME_QUEUE / "a" / str(queue_id)).iterdir():
            entries = np.fromfile(file, ">i8,>i4,>i8")
            entries[name][1::2] += by
            entries.tofile(file)
    parts.queues.forget()
    asked = Asked(parts)
    assert begins(parts, asked) == expected


def test_a_queue_that_cannot_be_read_is_no_matter(store: rocketpy.Store) -> None:
    parts = store._store.parts
    expected = begins(parts, None)
    (file, *_) = sorted((parts.root / CONSUME_QUEUE / "a" / "1").iterdir())
    file.unlink()
    file.mkdir()
    parts.queues.forget()
    asked = Asked(parts)
    assert begins(parts, asked) == expected
    assert not any(asked.counts)


def test_many_queues_are_not_asked(store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queued_starts, "_MOST_QUEUES", 5)
    asked = Asked(store._store.parts)
    assert begins(store._store.parts, asked) == begins(store._store.parts, None)
    assert not any(asked.counts)


def test_records_that_come_meanwhile_are_walked(store: rocketpy.Store) -> None:
    parts = store._store.parts
    asked = Asked(parts)
    steps = walk(parts, 0, most=MOST, told=asked)
    first = next(steps)
    store.append("a", pa.table({"body": ["late"] * 20}))
    blocks = [first.block, *(step.block for step in steps)]
    assert sum(len(block) for block in blocks if block is not None) == 200
