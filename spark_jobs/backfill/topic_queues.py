"""The driver's look at topics of a cluster: which queues there are, and what they hold.

It needs nothing but what a backend offers to plans. All brokers of the topics must answer: what one
of them holds is never taken for nothing.
"""

from __future__ import annotations

import numpy as np

from rocketpy.broker_core.errors import OffsetOutOfRangeError, TopicNotFoundError
from rocketpy.connector.backends import open_backend
from rocketpy.connector.fates import is_anew
from rocketpy.connector.offsets import NOTHING, MessageQueue, Positions, SourceOffset
from rocketpy.connector.planning import QueueRange, StoredRanges
from rocketpy.connector.topics import stored_ranges
from rocketpy.spark_jobs.backfill.selection import CLOCK_SLACK_MS, BackfillSelection
from rocketpy.spark_jobs.job_cluster import JobCluster
from rocketpy.spark_jobs.job_errors import JobRefusedError


class TopicQueues:
    """Looks at a cluster for one selection. Close it; not to be pickled.

    Raises:
        OptionError: the cluster cannot be asked as it is given.
        TopicNotFoundError: it does not know a topic that is named.
        UnreachableError: no name server answers.
    """

    def __init__(self, cluster: JobCluster, selection: BackfillSelection) -> None:
        self.selection = selection.of_cluster()
        self._options = cluster.reading(**selection.source_options())
        self._backend = open_backend(self._options)
        try:
            known = self._backend.topics() if selection.topics else ()
            for topic in selection.topics:
                if topic not in known:
                    raise TopicNotFoundError(topic, known)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._backend.close()

    def stored(self) -> dict[MessageQueue, tuple[int, int]]:
        """Return the range of offsets stored now in each queue that is selected.

        Raises:
            JobRefusedError: a queue that is named does not exist.
            UnreachableError: a broker does not answer.
        """
        found = stored_ranges(self._options, self._backend)
        if not self.selection.offsets:
            return found
        named = self.selection.queues(self._backend.broker)
        for queue in sorted(named.keys() - found.keys()):
            known = ", ".join(map(str, sorted(found)))
            raise JobRefusedError("offsets", f"there is no queue {queue}; there are {known}")
        return {queue: bounds for queue, bounds in found.items() if queue in named}

    def selected(self, stored: StoredRanges, *, slack_ms: int = CLOCK_SLACK_MS) -> StoredRanges:
        """Return the part of each queue that the selection is about."""
        asked, find = self.selection, self._backend.offset_by_time
        named = asked.queues(self._backend.broker)
        found = {}
        for queue, (first, end) in stored.items():
            if asked.since_ms is not None and first < end:
                first = max(first, find(queue, max(asked.since_ms - slack_ms, 0)))
            if asked.until_ms is not None and first < end:
                end = min(end, find(queue, asked.until_ms + slack_ms))
            if queue in named:
                first, end = max(first, named[queue][0]), min(end, named[queue][1])
            found[queue] = first, max(first, end)
        return found

    def point(self, positions: Positions, before: SourceOffset | None = None) -> SourceOffset:
        """Return positions with what tells, later on, whether these are the same queues."""
        known = SourceOffset({}) if before is None else before
        anchors = {queue: at for queue, at in known.anchors.items() if queue in positions}
        for queue, position in positions.items():
            if position > 0 and known.positions.get(queue) != position:
                at = self._backend.physical_offset(queue, position - 1)
                anchors[queue] = NOTHING if at is None else at
        return SourceOffset(positions, None, anchors)

    def check_same(self, point: SourceOffset, stored: StoredRanges) -> None:
        """Raise unless queues are those that were read up to a point.

        Raises:
            JobRefusedError: a topic was made anew, or this is another cluster.
        """
        for queue, position in sorted(point.positions.items()):
            anchor, find = point.anchors.get(queue), self._backend.physical_offset
            anchor = None if anchor == NOTHING else anchor
            if queue in stored and is_anew(queue, position, anchor, stored, find):
                reason = (
                    f"was read up to {position} into this table, and is another queue now: its "
                    "topic was made anew, or this is another cluster; give the cluster that the "
                    "table was filled from, or another job_name to add this one"
                )
                raise JobRefusedError(str(queue), reason)

    def mean_bytes(self, ranges: StoredRanges) -> dict[MessageQueue, float]:
        """Return about how many bytes a message of each queue has, by its first ones."""
        found = {}
        for queue, (first, end) in ranges.items():
            sizes = self._backend.sizes(queue, first, end) if first < end else np.zeros(0)
            found[queue] = float(np.mean(sizes)) if sizes.size else 0.0
        return found

    def stored_ms(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return the store time of a message, in ms; None if it is gone."""
        part = QueueRange(queue, queue_offset, queue_offset + 1)
        read = self._backend.read(
            part, ["store_timestamp"], tags=None, sql=None, group=None, decompress=False
        )
        try:
            times = [time for batch in read for time in batch.column(0).to_pylist()]
        except OffsetOutOfRangeError:
            return None
        return round(times[0].timestamp() * 1000) if times else None
