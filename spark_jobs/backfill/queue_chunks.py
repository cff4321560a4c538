"""Where topics of a cluster are cut: ranges of queues, which together are one commit of the table.

Chunks are numbered: the number is their version in the transaction of the job. Cuts need not be the
same in another run: a run starts where the last chunk ends that the table has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.planning import StoredRanges
from rocketpy.spark_jobs.queue_ranges import range_options


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChunk:
    """Some messages of each queue that has any left; ranges are first offsets and ends."""

    start: int  # the number of the chunk before it
    ranges: StoredRanges
    size_bytes: int  # about

    @property
    def end(self) -> int:
        """Its own number, counted from 1."""
        return self.start + 1

    @property
    def topics(self) -> int:
        """How many topics it has messages of."""
        return len({queue.topic for queue in self.ranges})

    def tasks(self, file_bytes: int) -> int:
        """Return how many tasks shall write it, so that files are large enough."""
        return max(1, round(self.size_bytes / file_bytes))

    def source_options(self) -> dict[str, str]:
        """Return the options of format 'rocketpy' that read it."""
        return range_options(self.ranges)

    def after(self, position: int) -> str:
        """Return how another job goes on after a chunk of this one."""
        return f"offsets from those on that the commit of chunk {position} has as 'positions'"


def cut(
    ranges: StoredRanges, mean_bytes: Mapping[MessageQueue, float], chunk_bytes: int, *, start: int
) -> Iterator[QueueChunk]:
    """Cut ranges of queues into chunks of about as many bytes, after the chunk `start`.

    Each has the same share of all queues, so that messages of one time come together.
    """
    while left := {queue: bounds for queue, bounds in ranges.items() if bounds[0] < bounds[1]}:
        total = _bytes(left, mean_bytes)
        share = min(chunk_bytes / total, 1.0) if total else 1.0
        taken = {
            queue: (first, min(first + max(math.ceil((end - first) * share), 1), end))
            for queue, (first, end) in left.items()
        }
        size_bytes = int(_bytes(taken, mean_bytes))
        yield QueueChunk(start=start, ranges=taken, size_bytes=size_bytes)
        ranges = {queue: (taken[queue][1], end) for queue, (_, end) in left.items()}
        start += 1


def _bytes(ranges: StoredRanges, mean_bytes: Mapping[MessageQueue, float]) -> float:
    sizes = ((end - first) * mean_bytes[queue] for queue, (first, end) in ranges.items())
    return sum(sizes, 0.0)
