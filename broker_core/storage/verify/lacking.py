"""Part of I5: records that are in the log, but not in their queue."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.sys_flags import queued
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.calm import Calm
from rocketpy.broker_core.storage.verify.log import path_of
from rocketpy.broker_core.storage.verify.problems import Problem
from rocketpy.broker_core.storage.verify.records import SoundRecords

_Name = tuple[str, int] | None  # topic and queue; None for records whose topic cannot be one


class _Run(NamedTuple):
    low: int  # queue offsets, in turn
    high: int
    physical_offset: int  # of the first one
    is_published: bool  # whether all were published before verification began


class LackingMessages:
    """Runs of messages without an entry, queue by queue."""

    def __init__(self, parts: StoreParts, calm: Calm) -> None:
        self._parts, self._calm = parts, calm
        self._runs: dict[_Name, list[_Run]] = {}

    def take(
        self, name: _Name, offsets: Ints, physical: Ints, is_entered: npt.NDArray[np.bool_]
    ) -> None:
        """Note which of some consecutive messages of a queue are not in it."""
        if name is not None and offsets[0] == 0:
            # The queue began anew: its topic was deleted, and then made again.
            self._runs.pop(name, None)
        if is_entered.all():
            return
        rows = np.flatnonzero(~is_entered)
        is_published = physical[rows] < self._calm.published_end
        ends = np.flatnonzero((np.diff(rows) != 1) | np.diff(is_published)) + 1
        for part in np.split(rows, ends):
            low, high, at = int(offsets[part[0]]), int(offsets[part[-1]]), int(physical[part[0]])
            self._add(name, _Run(low, high, at, at < self._calm.published_end))

    def _add(self, name: _Name, run: _Run) -> None:
        known = self._runs.setdefault(name, [])
        last = known[-1] if known else None
        if last and last.high + 1 == run.low and last.is_published == run.is_published:
            known[-1] = last._replace(high=run.high)
        else:
            known.append(run)

    def take_nameless(self, records: SoundRecords) -> None:
        """Note records whose topic cannot name a folder."""
        is_known = np.zeros(len(records), bool)
        for dispatch in records.dispatches:
            is_known[records.rows(dispatch)] = True
        for row in np.flatnonzero(~is_known & queued(records.block.sys_flags)).tolist():
            offset = records.block.head["queue_offset"][row : row + 1].astype(np.int64)
            self.take(None, offset, records.physical_offsets[row : row + 1], np.zeros(1, bool))

    def problems(self, known_topics: Container[str] | None, on_disk: set[str]) -> Iterator[Problem]:
        """Report them.

        The records of a topic that was deleted, queues and all, stay in the log; `known_topics` is
        None where it cannot be told which were.
        """
        is_clean, log_start = self._calm.is_clean(), self._parts.log.min_offset()
        removed = self._parts.removed_topics.read()
        for name, found in self._runs.items():
            for run in sorted(found):
                if run.physical_offset < log_start or not (is_clean or run.is_published):
                    continue  # deleted meanwhile, or perhaps just being appended
                if name is None:
                    text = "the record's topic cannot be one"
                else:
                    topic, queue_id = name
                    is_deleted = known_topics is not None and topic not in known_topics
                    is_removed = run.physical_offset < removed.end_of(topic)
                    if is_removed or (is_deleted and topic not in on_disk):
                        continue
                    one = run.low == run.high
                    what = (
                        f"message {run.low} has"
                        if one
                        else f"messages {run.low} to {run.high} have"
                    )
                    text = f"{what} no entry in {topic}/{queue_id}"
                yield Problem(
                    "I5", path_of(self._parts, run.physical_offset), run.physical_offset, text
                )
