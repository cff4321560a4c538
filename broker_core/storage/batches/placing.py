"""Which offsets the records of a batch get, chunk by chunk: the same every time it is gone through.

The numbers of records within their chunk are staged, so that a chunk only adds where its queues go
on. Starts are asked of the store once for each queue, by the thread that holds the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage.appends import offsets_from, refuse_larger_rows
from rocketpy.broker_core.storage.batches.staging import StagedChunk
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.queue_ends import QueueEnd, QueueKey


class ChunkPlaces(NamedTuple):
    """Where the records of a chunk go."""

    queue_offsets: Ints
    physical_offsets: Ints
    runs: list[tuple[int, int]]  # the rows (first, last) that share a file


@dataclass(slots=True)
class Placing:
    """Gives each chunk in turn its queue offsets and physical offsets, from the log's end on."""

    log: CommitLog
    end: int
    start_of: Callable[[QueueKey], int]  # tells the first offset of a queue that the batch takes
    ends: dict[QueueKey, QueueEnd] = field(default_factory=dict)  # where the queues are left
    _firsts: dict[QueueKey, int] = field(default_factory=dict)

    def place(self, chunk: StagedChunk) -> ChunkPlaces:
        """Return where the records of the next chunk go.

        Raises:
            MessageRefusedError: a record is larger than a file of the log.
        """
        queue_ids, sizes = chunk.rows["queue_id"], chunk.sizes
        refuse_larger_rows(sizes, self.log.largest_record)
        physical_offsets, runs = self.log.place(sizes, self.end)
        self.end = int(physical_offsets[-1] + sizes[-1])
        counts = np.bincount(queue_ids)
        last_rows = np.zeros(len(counts), np.int64)
        last_rows[queue_ids] = np.arange(len(queue_ids))  # of equal ids the last row stays
        starts = dict[int, int]()
        for queue_id in np.flatnonzero(counts).tolist():
            queue = chunk.topic, queue_id
            known = self.ends.get(queue)
            start = starts[queue_id] = known.next_offset if known else self.start_of(queue)
            self._firsts.setdefault(queue, start)
            last_at = int(physical_offsets[last_rows[queue_id]])
            self.ends[queue] = QueueEnd(start + int(counts[queue_id]), last_at)
        queue_offsets = offsets_from(starts, queue_ids, chunk.rows["number"])
        return ChunkPlaces(queue_offsets, physical_offsets, runs)

    def take_firsts(self) -> dict[QueueKey, int]:
        """Return the first offset that was given out in each queue since this was asked last."""
        firsts, self._firsts = self._firsts, {}
        return firsts
