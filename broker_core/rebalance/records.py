"""Where the records of groups are kept: who their members are, and which generation is the newest.

R1  A change is made on the newest record, and no other change comes in between. How that is done
    is the keeper's business: a store has its lock, a cluster the order of a queue (record_log.py).
R2  A change may be tried more than once, so an edit is a function of the record and of nothing that
    a first try has changed.
R3  A change is stored when change() returns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.rebalance.assignment import Situation
from rocketpy.broker_core.rebalance.generation import (
    Generation,
    read_generation,
    write_generation,
)
from rocketpy.broker_core.rebalance.membership import (
    Member,
    Members,
    groups_with_members,
    read_members,
    write_members,
)
from rocketpy.broker_core.rebalance.situation import StoreSurvey

if TYPE_CHECKING:
    from rocketpy.broker_core.storage.store import MessageStore


class GroupRecord(NamedTuple):
    """What is known of a group."""

    members: Members  # by name; the dead too that nobody has removed yet
    generation: Generation | None


NO_RECORD = GroupRecord({}, None)
Edit = Callable[[GroupRecord], GroupRecord]


class Survey(Protocol):
    """A look at queues and backlogs."""

    def situation(self, group: str, members: Members, *, with_lag: bool = False) -> Situation:
        """Return what a group is made of; `members` are those who live."""


class GroupRecords(Protocol):
    """What keeps the records of groups."""

    @property
    def clock(self) -> Clock:
        """The clock by which members are judged."""

    def groups(self) -> list[str]:
        """Return the groups that have, or had, members."""

    def members(self, group: str) -> dict[str, Member]:
        """Return the members of a group by name, the dead too."""

    def generation(self, group: str) -> Generation | None:
        """Return the newest generation of a group."""

    def change(self, group: str, edit: Edit) -> GroupRecord:
        """Replace the record of a group by an edited one; return what it is then."""

    def survey(self, *, fresh: bool = False) -> Survey:
        """Return a look at the queues: as they are now, or as they were a moment ago."""


class StoreRecords:
    """Records in the files of a store. `locked` holds the store's lock; it may nest."""

    def __init__(
        self, store: MessageStore, locked: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._store, self._locked = store, locked

    @property
    def clock(self) -> Clock:
        """The clock of the store."""
        return self._store.clock

    def groups(self) -> list[str]:
        """Return the groups that have, or had, members."""
        return groups_with_members(self._store.root)

    def members(self, group: str) -> dict[str, Member]:
        """Return the members of a group by name, the dead too."""
        return read_members(self._store.root, group)

    def generation(self, group: str) -> Generation | None:
        """Return the newest generation of a group."""
        return read_generation(self._store.root, group)

    def change(self, group: str, edit: Edit) -> GroupRecord:
        """Replace the record of a group by an edited one, under the store's lock."""
        root, disk = self._store.root, self._store.disk
        with self._locked():
            before = GroupRecord(self.members(group), self.generation(group))
            after = edit(before)
            if after.members != before.members:
                write_members(root, group, after.members, disk)
            if after.generation is not None and after.generation != before.generation:
                write_generation(root, group, after.generation, disk)
            return after

    def survey(self, *, fresh: bool = False) -> StoreSurvey:  # noqa: ARG002  a look costs little
        """Return a look at the queues as they are now."""
        return StoreSurvey(self._store)
