"""Where the log is cut: stretches between records, each of which is one commit of the table.

The end of a chunk is its name. Cuts need not be the same in another run: a run starts at the end
of the last chunk that the table has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rocketpy.broker_core.bisection import first_false
from rocketpy.spark_jobs.backfill.store_log import StoreLog

_SPOTS = 16  # of a chunk, to see which topics are in it


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillChunk:
    """The records that begin from `start` on and before `end`."""

    start: int
    end: int
    by_queues: bool
    size_bytes: int  # of the selected messages, about
    topics: int  # that it has messages of, about

    def tasks(self, file_bytes: int) -> int:
        """Return how many tasks shall write it, so that files are large enough."""
        return max(1, round(self.size_bytes / file_bytes))

    def source_options(self) -> dict[str, str]:
        """Return the options of format 'rocketpy' that read it."""
        return {
            "scan": "queues" if self.by_queues else "commitlog",
            "startingLogOffset": str(self.start),
            "endingLogOffset": str(self.end),
        }

    def after(self, position: int) -> str:
        """Return how another job goes on after a position of this one."""
        return f"log_start={position}"

    def by_log(self) -> BackfillChunk:
        """Return it to be read from the log itself."""
        return replace(self, by_queues=False)


def chunks_by_log(log: StoreLog, start: int, end: int, chunk_bytes: int) -> Iterator[BackfillChunk]:
    """Cut a part of the log into stretches of about as many bytes."""
    while start < end:
        stop = log.next_record(start + chunk_bytes, end) if end - start > chunk_bytes else end
        sample = log.sample(start, stop, spots=_SPOTS)
        names = sample["topic"].unique().to_pylist()
        sizes = sample.group_by("topic").aggregate([("store_size", "sum")]).to_pylist()
        wanted = [name for name in names if log.options.is_wanted(name)]
        sampled = sum(row["store_size_sum"] for row in sizes)
        selected = sum(row["store_size_sum"] for row in sizes if row["topic"] in wanted)
        share = selected / sampled if sampled else 1.0
        yield BackfillChunk(
            start=start,
            end=stop,
            by_queues=False,
            size_bytes=int((stop - start) * share),
            topics=len(wanted),
        )
        start = stop


def chunks_by_queues(
    log: StoreLog, start: int, end: int, chunk_bytes: int
) -> Iterator[BackfillChunk]:
    """Cut a part of the log so that each stretch has about as many bytes of the selected topics."""
    while start < end:
        ahead = _Ahead(log, start, end)
        stop = ahead.end_of(chunk_bytes)
        counts = log.counts(start, stop)
        yield BackfillChunk(
            start=start,
            end=stop,
            by_queues=True,
            size_bytes=int(ahead.size(stop)),
            topics=len({queue.topic for queue, (first, last) in counts.items() if last > first}),
        )
        start = stop


class _Ahead:
    """The selected messages from a physical offset on, counted in their queues."""

    def __init__(self, log: StoreLog, start: int, end: int) -> None:
        self._log, self._start, self._end = log, start, end
        self._queues = {
            queue: (first, log.mean_size(queue, first))
            for queue, (first, _) in log.counts(start, end).items()
        }

    def size(self, stop: int) -> float:
        """Return about how many bytes they have up to a physical offset."""
        counts = self._log.counts(self._start, stop)
        sizes = ((counts[queue][1] - first) * mean for queue, (first, mean) in self._queues.items())
        return sum(sizes, 0.0)

    def end_of(self, size_bytes: int) -> int:
        """Return where they have about so many bytes: a physical offset between two records."""
        if self.size(self._end) <= size_bytes:
            return self._end
        step = max(1, size_bytes // 64)  # nobody needs it to the byte

        def is_short(steps: int) -> bool:
            return self.size(min(self._start + steps * step, self._end)) < size_bytes

        steps = first_false(is_short, 1, -(-(self._end - self._start) // step))
        return self._log.next_record(min(self._start + steps * step, self._end), self._end)
