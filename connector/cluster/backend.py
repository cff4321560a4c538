"""A cluster as a backend: name servers say where queues are, brokers give messages and offsets.

Its parts are imported when they are first needed: a task only reads, a plan seldom asks for more
than queues, and to define the requests of the others takes longer than to run a small task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.errors import CorruptStoreError, OffsetOutOfRangeError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.protocol.bodies.routes import ClusterInfo
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.planning import QueueRange

if TYPE_CHECKING:
    from rocketpy.connector.cluster.groups import ClusterGroupOffsets
    from rocketpy.connector.cluster.members import ClusterMembers
    from rocketpy.connector.cluster.queues import ClusterQueues
    from rocketpy.connector.cluster.reading import ClusterMessages
    from rocketpy.connector.cluster.tables import ClusterTables


class ClusterBackend:
    """Asks the servers of one cluster. For one task at a time; not to be pickled.

    Its keys cannot be looked up: brokers give a bounded number of messages for a key. So with
    `keys` every message is read, and none is missing.
    """

    has_index = False

    def __init__(self, options: ClusterOptions, known: ClusterInfo | None = None) -> None:
        """Connect on first use; `known` is what the identity was when a plan was made."""
        self._options = options
        self._cluster = options.access.connect(known)
        self._members: ClusterMembers | None = None

    @lazy_property
    def _queues(self) -> ClusterQueues:
        from rocketpy.connector.cluster.queues import ClusterQueues

        return ClusterQueues(self._cluster, self._options)

    @lazy_property
    def _groups(self) -> ClusterGroupOffsets:
        from rocketpy.connector.cluster.groups import ClusterGroupOffsets

        return ClusterGroupOffsets(self._cluster, self._options, self._queues)

    @lazy_property
    def _messages(self) -> ClusterMessages:
        from rocketpy.connector.cluster.reading import ClusterMessages

        return ClusterMessages(self._cluster, self._options)

    def close(self) -> None:
        """Close all connections."""
        if self._members is not None:
            self._members.close()
        self._cluster.close()

    def drop_lost(self) -> None:
        """Close the connections that cannot be used again, after a pause."""
        self._cluster.drop_lost()

    def identity(self) -> ClusterInfo:
        """Return its brokers: a task goes on with them if no name server answers."""
        return self._cluster.info()

    def members(self) -> ClusterMembers:
        """Return what keeps the members of groups."""
        from rocketpy.connector.cluster.members import ClusterMembers

        if self._members is None:
            self._members = ClusterMembers(
                self._cluster, self._options, queues=self._queues, offsets=self._groups
            )
        return self._members

    def tables(self) -> ClusterTables:
        """Return what makes the small views."""
        from rocketpy.connector.cluster.tables import ClusterTables

        return ClusterTables(self._cluster, self._options)

    def views(self) -> None:
        """Return None: there are no files."""

    # --- plans ------------------------------------------------------------------------------------

    @property
    def broker(self) -> str:
        """The broker of queues that are named by their id alone: the only one, or none."""
        return self._queues.broker()

    def topics(self) -> Sequence[str]:
        """Return the names of all topics."""
        return self._queues.topics()

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        """Return the range of offsets stored in each queue of some topics: first, and end."""
        return self._queues.ranges(topics)

    def out_of_reach(self, brokers: Collection[str]) -> Mapping[str, str]:
        """Return which of these brokers cannot be asked now, and why: they may come back."""
        return self._queues.out_of_reach(brokers)

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return where in its broker's log a message of a queue lies; None if it is not there."""
        return self._queues.physical_offset(queue, queue_offset)

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        """Have physical_offset() of some queues and offsets ready, all asked for at once."""
        self._queues.look_up(messages)

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the first offset stored at or after a time; the end if there is none."""
        return self._queues.offset_by_time(queue, time_ms)

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return about how many bytes each message of a range has."""
        return self._queues.sizes(queue, start, end)

    # --- groups -----------------------------------------------------------------------------------

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a group committed."""
        return self._groups.committed(group, topics)

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        """Note the next offset to read of some queues."""
        self._groups.commit(group, positions)

    # --- tasks ------------------------------------------------------------------------------------

    def range(self, queue: MessageQueue) -> tuple[int, int]:
        """Return the range of offsets stored in a queue: first, and end."""
        return self._queues.range(queue)

    def read(
        self,
        part: QueueRange,
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        group: str | None,  # noqa: ARG002
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range.

        Raises:
            OffsetOutOfRangeError: messages are not there (any more).
        """
        return self._messages.read(part, columns, tags=tags, sql=sql, decompress=decompress)

    def read_together(
        self,
        parts: Sequence[QueueRange],
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        decompress: bool,
    ) -> tuple[list[pa.RecordBatch], list[QueueRange]]:
        """Return messages of small ranges, pulled at once, and what is left of them for read()."""
        return self._messages.read_together(
            parts, columns, tags=tags, sql=sql, decompress=decompress
        )

    def is_deleted(self, error: OffsetOutOfRangeError | CorruptStoreError) -> bool:
        """Whether a read failed because of retention, not of damage."""
        return isinstance(error, OffsetOutOfRangeError) and error.asked < error.held[0]

    def find(
        self, topic: str, keys: Sequence[str], columns: Sequence[str], *, decompress: bool
    ) -> Iterator[pa.RecordBatch]:
        """Raise: `has_index` is false."""
        raise NotImplementedError(f"{topic}, {keys}, {columns}, {decompress}")


def open_cluster(options: ClusterOptions, seen: object) -> ClusterBackend:
    """Open a cluster; `seen` is the identity that a plan found, if there is one."""
    return ClusterBackend(options, seen if isinstance(seen, ClusterInfo) else None)
