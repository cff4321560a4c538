"""Every error that rocketpy raises, under one base.

Each message says what happened, where, and what to do. The fields are attributes, and they are also
`args`, so that errors survive the pickling between Spark's driver, workers and tasks.
`retriable` says whether the same call may succeed later with nothing changed by the caller.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar


class RocketPyError(Exception):
    """The base of all errors of rocketpy."""

    retriable: ClassVar[bool] = False


# --- opening and owning a store ---------------------------------------------------------------


class StoreError(RocketPyError):
    """The base of errors about a store directory."""


class StoreNotFoundError(StoreError):
    """Is raised when there is no store to be read, or none any more when it is closed."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path} is not a store (it has no commitlog folder); "
            "give the folder that holds 'commitlog', or open it for writing to make a new store"
        )


class StoreLockedError(StoreError):
    """Is raised when another process keeps the store's lock for longer than the lock time-out."""

    retriable = True

    def __init__(self, path: Path | str, holder_pid: int | None, waited_s: float) -> None:
        super().__init__(path, holder_pid, waited_s)
        self.path, self.holder_pid, self.waited_s = path, holder_pid, waited_s

    def __str__(self) -> str:
        holder = f"process {self.holder_pid}" if self.holder_pid else "another process"
        return (
            f"{self.path} is locked by {holder} (waited {self.waited_s:g} s), as a running broker "
            "does; stop it, or open the store with read_only=True"
        )


class ReadOnlyStoreError(StoreError):
    """Is raised when a store that was opened with read_only=True is asked to change."""

    def __init__(self, path: Path | str, action: str) -> None:
        super().__init__(path, action)
        self.path, self.action = path, action

    def __str__(self) -> str:
        return f"{self.path} was opened with read_only=True: cannot {self.action}"


class StoreClosedError(StoreError):
    """Is raised when a store is used after close()."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} was closed; open it again with rocketpy.open()"


class UnsupportedStoreError(StoreError):
    """Is raised for a store of which we could read only a part, so that none is taken for all."""

    def __init__(self, path: Path | str, reasons: Sequence[str]) -> None:
        super().__init__(path, reasons)
        self.path, self.reasons = path, reasons

    def __str__(self) -> str:
        return f"{self.path} cannot be read whole: {'; '.join(self.reasons)}"


class DiskFullError(StoreError):
    """Is raised when the disk has no room; what was acknowledged before stays."""

    retriable = True

    def __init__(self, path: Path | str, needed_bytes: int, cause: str) -> None:
        super().__init__(path, needed_bytes, cause)
        self.path, self.needed_bytes, self.cause = path, needed_bytes, cause

    def __str__(self) -> str:
        return (
            f"no room for {self.needed_bytes} bytes in {self.path} ({self.cause}); nothing of this "
            "call was stored: free some space and call again"
        )


class LeaseHeldError(StoreError):
    """Is raised when another does what only one may do at a time, such as delivering."""

    retriable = True

    def __init__(self, path: Path | str, what: str, owner: str, kind: str, left_ms: int) -> None:
        super().__init__(path, what, owner, kind, left_ms)
        self.path, self.what, self.owner, self.kind = path, what, owner, kind
        self.left_ms = left_ms

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.what} is done by a {self.kind} ({self.owner}) now; stop that one, "
            f"or, if it has died, wait {self.left_ms / 1000:.1f} s until its lease is over"
        )


class LeaseLostError(StoreError):
    """Is raised when another has taken over what one was doing, because it had been silent."""

    def __init__(self, path: Path | str, what: str, owner: str) -> None:
        super().__init__(path, what, owner)
        self.path, self.what, self.owner = path, what, owner

    def __str__(self) -> str:
        return (
            f"{self.path}: the lease of {self.what} was over and {self.owner} has taken it; "
            "nothing was done twice, but this process must stop doing it"
        )


class DeliveryMovedError(StoreError):
    """Is raised when waiting messages were delivered by another between plan and commit."""

    retriable = True

    def __init__(
        self, path: Path | str, source: str, planned: Sequence[int], now: Sequence[int]
    ) -> None:
        super().__init__(path, source, planned, now)
        self.path, self.source, self.planned, self.now = path, source, planned, now

    def __str__(self) -> str:
        return (
            f"{self.path}: delivery of {self.source} was planned from {list(self.planned)}, but is "
            f"at {list(self.now)} by now; nothing was stored: plan it again"
        )


class ReplayRunningError(StoreError):
    """Is raised when another process replays the same dead letters."""

    retriable = True

    def __init__(self, path: Path | str, group: str) -> None:
        super().__init__(path, group)
        self.path, self.group = path, group

    def __str__(self) -> str:
        return (
            f"the dead letters of group {self.group!r} are being replayed by another process "
            f"({self.path}); wait until it is done, or stop it"
        )


# --- damage -----------------------------------------------------------------------------------


class CorruptStoreError(StoreError):
    """Is raised when bytes of a store contradict its invariants and no crash explains it."""

    def __init__(self, path: Path | str, offset: int, reason: str) -> None:
        super().__init__(path, offset, reason)
        self.path, self.offset, self.reason = path, offset, reason

    def __str__(self) -> str:
        return (
            f"{self.path} is corrupt at offset {self.offset}: {self.reason}; "
            "'rocketpy store verify' lists all damage, 'rocketpy store repair' rebuilds what it can"
        )


class RecordError(RocketPyError):
    """Is raised when bytes are not a whole, sound record; `at` counts from the buffer's start."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(at, reason)
        self.at, self.reason = at, reason

    def __str__(self) -> str:
        return f"no sound record at byte {self.at}: {self.reason}"


class MetadataError(StoreError):
    """Is raised when a file under config/ cannot be understood."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path} cannot be read: {self.reason}"


# --- asking for and sending messages ----------------------------------------------------------


class NameRefusedError(RocketPyError):
    """Is raised for a name that RocketMQ would not take."""

    kind: ClassVar[str] = "name"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}: {self.reason}"


class TopicNameError(NameRefusedError):
    """Is raised for a topic name that RocketMQ would not take."""

    kind = "topic name"


class GroupNameError(NameRefusedError):
    """Is raised for a consumer group name that RocketMQ would not take."""

    kind = "consumer group name"


class UnknownNameError(RocketPyError):
    """Is raised for a name that nothing has; names the nearest one that something has."""

    what: ClassVar[str] = "nothing has the name {}"
    remedy: ClassVar[str] = "look at what there is"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        known = sorted(known)
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        near = difflib.get_close_matches(self.name, self.known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else self.remedy
        return f"{self.what.format(repr(self.name))}; {hint}"


class TopicNotFoundError(UnknownNameError):
    """Is raised when a topic does not exist; names the nearest one that does."""

    what = "there is no topic {}"
    remedy = (
        "'rocketpy topic create' makes it; so do store.create_topic(), mq.admin.topics.create()"
    )


class GroupNotFoundError(UnknownNameError):
    """Is raised when a group has committed nothing; names the nearest one that has."""

    what = "group {} has committed no offset"
    remedy = "'rocketpy group lag' shows all that have"


class QueueNotFoundError(RocketPyError):
    """Is raised when a topic has no queue of that id."""

    def __init__(self, topic: str, queue_id: int, queues: int) -> None:
        super().__init__(topic, queue_id, queues)
        self.topic, self.queue_id, self.queues = topic, queue_id, queues

    def __str__(self) -> str:
        return f"topic {self.topic!r} has queues 0 to {self.queues - 1}, not {self.queue_id}"


class OffsetOutOfRangeError(RocketPyError):
    """Is raised when messages are asked for that the queue does not hold (any more)."""

    def __init__(self, topic: str, queue_id: int, asked: int, held: tuple[int, int]) -> None:
        super().__init__(topic, queue_id, asked, held)
        self.topic, self.queue_id, self.asked, self.held = topic, queue_id, asked, held

    def __str__(self) -> str:
        low, high = self.held
        return (
            f"offset {self.asked} of {self.topic!r} queue {self.queue_id} is not there: "
            f"the queue holds {low} to {high} (exclusive)"
        )


class MessageNotFoundError(RocketPyError):
    """Is raised when no message has the given id."""

    def __init__(self, msg_id: str, reason: str) -> None:
        super().__init__(msg_id, reason)
        self.msg_id, self.reason = msg_id, reason

    def __str__(self) -> str:
        return f"no message {self.msg_id!r}: {self.reason}"


class MessageRefusedError(RocketPyError):
    """Is raised when a message breaks a limit or a rule of the format; nothing was stored."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class ColumnError(RocketPyError):
    """Is raised when a column of a table cannot be stored, or one that must be there is missing."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column, self.reason = column, reason

    def __str__(self) -> str:
        return f"column {self.column!r}: {self.reason}"


# --- filters ----------------------------------------------------------------------------------


_SHOWN = 60  # characters of a filter, on each side of a mistake


class FilterSyntaxError(RocketPyError):
    """Is raised for an SQL92 filter that cannot be understood; points at the mistake."""

    def __init__(self, sql: str, at: int, reason: str) -> None:
        super().__init__(sql, at, reason)
        self.sql, self.at, self.reason = sql, at, reason

    def __str__(self) -> str:
        before = self.sql[: self.at].rpartition("\n")[2][-_SHOWN:]
        after = self.sql[self.at :].partition("\n")[0][:_SHOWN]
        # A tab stays one, so that the caret stands below the mistake.
        blank = "".join(char if char == "\t" else " " for char in before)
        shown = f"  {before}{after}\n  {blank}^"
        return f"SQL filter, character {self.at + 1}: {self.reason}\n{shown}"


# --- members of consumer groups ---------------------------------------------------------------


class RebalanceError(RocketPyError):
    """Is raised when queues cannot be divided as asked for."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class MemberNameError(NameRefusedError):
    """Is raised for a name that a member of a consumer group cannot have."""

    kind = "member name"


class MemberReplacedError(RocketPyError):
    """Is raised when another consumer has joined its group under the same member name."""

    def __init__(self, group: str, member: str) -> None:
        super().__init__(group, member)
        self.group, self.member = group, member

    def __str__(self) -> str:
        return (
            f"member {self.member!r} of consumer group {self.group!r} was joined again by another "
            "consumer, which has its queues now; give each query a member name of its own"
        )


class MemberNotFoundError(RocketPyError):
    """Is raised when a member is asked to go on that never joined, left, or is taken for dead."""

    def __init__(self, group: str, member: str) -> None:
        super().__init__(group, member)
        self.group, self.member = group, member

    def __str__(self) -> str:
        return (
            f"consumer group {self.group!r} has no member {self.member!r}: it left, or its lease "
            "was over; join again"
        )
