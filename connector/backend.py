"""What the connector needs of a backend: of whatever stores the messages that it reads and writes.

The interfaces are small: one to plan, one to read, one for groups and one for their members, those
to write, one for small tables. A backend that has the files of a store has one more, the views. A
queue is topic, broker and id everywhere, as a backend may have several brokers. The options choose
the backend: see backends.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.errors import CorruptStoreError, OffsetOutOfRangeError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.connector.data_loss import Loss
from rocketpy.connector.offsets import MessageQueue, Positions
from rocketpy.connector.planning import QueueRange
from rocketpy.connector.writer_names import WriterName

if TYPE_CHECKING:  # it takes the store along, which tasks that read a cluster do without
    from rocketpy.broker_core.rebalance.observer import Observer
    from rocketpy.broker_core.rebalance.registry import Registry


class Queues(Protocol):
    """What plans: the queues that there are, and what they hold."""

    @property
    def broker(self) -> str:
        """The broker of queues that are named by their id alone."""

    def topics(self) -> Sequence[str]:
        """Return the names of all topics."""

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        """Return the range of offsets stored in each queue of some topics: first, and end.

        Raises:
            TopicNotFoundError: a topic is not there.
            BrokersUnreachableError: some brokers do not answer; it has what the others hold.
        """

    def out_of_reach(self, brokers: Collection[str]) -> Mapping[str, str]:
        """Return which of these brokers cannot be asked now, and why: they may come back.

        Queues are looked for anew after this: what is missing of the others then is gone.
        """

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return where in the log a message of a queue lies; None if there is no such entry."""

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        """Have physical_offset() of some queues and offsets ready, all asked for at once.

        Whoever asks nobody does nothing. It says nothing of what is not there, or not answered.
        """

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the first offset stored at or after a time; the end if there is none."""

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return the size in bytes of each message of a range, or only of its first messages."""


class Messages(Protocol):
    """What reads, in a task."""

    def range(self, queue: MessageQueue) -> tuple[int, int]:
        """Return the range of offsets stored in a queue: first, and end."""

    def read(
        self,
        part: QueueRange,
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        group: str | None,
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range.

        Raises:
            OffsetOutOfRangeError: the start is not stored (any more).
        """

    def read_together(
        self,
        parts: Sequence[QueueRange],
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        decompress: bool,
    ) -> tuple[list[pa.RecordBatch], list[QueueRange]]:
        """Return messages of some small ranges, and what is left of these ranges for read().

        For a backend where each range read by itself costs a way to a server. Of each queue, what
        is returned comes before what is left.
        """

    def is_deleted(self, error: OffsetOutOfRangeError | CorruptStoreError) -> bool:
        """Whether a read failed because of retention, not of damage."""

    @property
    def has_index(self) -> bool:
        """Whether keys can be looked up."""

    def find(
        self, topic: str, keys: Sequence[str], columns: Sequence[str], *, decompress: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a topic that have one of the keys, each once."""


class GroupOffsets(Protocol):
    """What keeps how far consumer groups have read."""

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a group committed."""

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        """Note the next offset to read of some queues, durably."""


class PlanningBackend(Queues, GroupOffsets, Protocol):
    """What a plan is made from."""


class MemberKeeper(GroupOffsets, Protocol):
    """What keeps the members of groups, and which of them reads which queues."""

    @property
    def clock(self) -> Clock:
        """The clock by which members are judged."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep others from changing members and offsets, at least other threads; it may nest.

        Where other processes are not kept off, their changes come in between, and a change of a
        member that was taken for dead meanwhile has no effect.

        Raises:
            StoreLockedError: another process keeps it.
        """

    def registry(self, observer: Observer | None = None) -> Registry:
        """Return the members and generations of the groups."""

    def consumers(self, group: str) -> set[str]:
        """Return the ids of clients that consume with a group and know nothing of its members.

        Raises:
            UnreachableError: they cannot be asked for now.
        """

    def broadcast_offsets(
        self, group: str, member: str, topics: Sequence[str]
    ) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a broadcasting member committed."""

    def commit_broadcast(self, group: str, member: str, positions: Positions) -> None:
        """Note for one broadcasting member the next offset to read of some queues, durably."""


class Tables(Protocol):
    """What makes the small views."""

    def table(self, view: str, now_ms: float | None = None) -> pa.RecordBatch:
        """Return `groups`, `topics`, or the `members` of groups; ages count up to `now_ms`, or now.

        What is a member is the backend's matter: to brokers it is a client that is connected.
        """


class Views(Tables, Protocol):
    """What there is to read besides messages, where the files of a store are at hand.

    These are its log, its index, the entries of its queues, and tables of its groups and topics.
    """

    def log_start(self) -> int:
        """Return where the commit log begins."""

    def log_end(self, *, skip_damage: bool = False) -> int:
        """Return where the commit log ends now.

        Raises:
            CorruptStoreError: records follow after the end, and damage is not to be skipped.
        """

    def boundary(self, physical_offset: int | None, *, skip_damage: bool = False) -> int:
        """Return the end of the records that begin before an offset; None: the end of the log."""

    def next_record(self, physical_offset: int, default: int) -> int:
        """Return where the first sound record at or after a physical offset begins."""

    def lost_before(self, start: int, end: int | None = None) -> list[Loss]:
        """Return what is gone of a stretch of the log, by retention."""

    def offset_in_log(self, queue: MessageQueue, physical_offset: int) -> int:
        """Return the first offset of a queue whose record begins there in the log, or later."""

    def scan(
        self,
        start: int,
        end: int,
        log_end: int,
        columns: Sequence[str],
        *,
        sql: SqlFilter | None,
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages whose records begin from `start` on and before `end`."""

    def at(self, physical_offsets: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return the sound records that begin at these offsets of the log, in any order."""

    def queue_entries(self, part: QueueRange, tags: TagFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a range of a queue; a tag filter compares hashes alone."""

    def index_names(self) -> Sequence[str]:
        """Return the names of the index files."""

    def index_size(self) -> int:
        """Return how many entries all index files have."""

    def index_entries(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the entries of one index file; none if it is gone meanwhile."""

    def group_names(self, topic: str | None = None) -> set[str]:
        """Return the groups that committed offsets, of a topic or of any."""


class Backend(PlanningBackend, Messages, Protocol):
    """An open backend. Made where it is used; not to be pickled."""

    def identity(self) -> object:
        """Return what a plan saw of it: tasks must find the same one, and may need to know it."""

    def members(self) -> MemberKeeper:
        """Return what keeps the members of groups: the same one each time.

        Raises:
            OptionError: this backend has none.
        """

    def tables(self) -> Tables | None:
        """Return what makes the small views; None if this backend has none."""

    def views(self) -> Views | None:
        """Return what there is to read besides messages; None if this backend has no files."""

    def close(self) -> None:
        """Let go of it."""


class StagedCopies(NamedTuple):
    """What one task staged of messages that go back to their group."""

    name: str  # under which a commit finds it
    retried: int
    dead: int


class SendingBack(Protocol):
    """What sends messages back to their group: staged by tasks, stored by a commit. Goes to tasks.

    A batch of a named writer is sent back once, however often it comes.
    """

    def is_done(self, writer: str | None, number: int) -> bool:
        """Whether this batch of this writer was sent back before.

        Raises:
            StaleBatchError: a later batch was, so that this is no replay.
        """

    def stage(self, transaction: str, positions: pa.Table) -> StagedCopies:
        """Stage copies of the messages that the rows name, in a task.

        Columns: `topic`, `queue_id`, `queue_offset`, `cause`, and `broker`, which may be null.
        """

    def commit(self, staged: Sequence[StagedCopies], writer: str | None, number: int) -> bool:
        """Store what tasks staged; return whether it was new."""

    def remove(self, transaction: str) -> None:
        """Remove what was staged in a transaction."""


class WritingTask(NamedTuple):
    """A task that writes one partition of a batch."""

    transaction: str  # what the tasks of one batch have in common
    partition: int
    attempt: int  # 0 unless Spark runs the task again
    writer: WriterName | None  # whose batch it is, if it can come again
    number: int  # of the batch

    @property
    def name(self) -> str:
        """What errors call its rows."""
        return f"partition {self.partition}"


class Writing(Protocol):
    """What writes: tasks stage rows, and a commit stores all of them or none. Goes to tasks.

    A backend without staging stores rows as tasks have them; its commit makes the batch known as
    done. Made anew on the driver for each run of a batch, before its tasks; and for each commit.
    """

    def stage(self, task: WritingTask, batches: Iterable[pa.RecordBatch]) -> object:
        """Stage the rows of one partition, in a task."""

    def commit(self, staged: Sequence[object], writer: WriterName | None, number: int) -> None:
        """Store what tasks staged; nothing if this batch of this writer was stored before."""

    def remove(self, transactions: Iterable[str]) -> None:
        """Remove what was staged in some transactions."""
