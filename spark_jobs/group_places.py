"""Where the groups are that the rebalance job divides: in a store's folder, or on a cluster.

A place goes to tasks, which look at it themselves: members, generations, queues, offsets. It holds
no connection and no open file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from rocketpy.broker_core.errors import ReadOnlyStoreError
from rocketpy.broker_core.rebalance.generation import decode_generation, publish_generations
from rocketpy.broker_core.rebalance.records import StoreRecords
from rocketpy.broker_core.rebalance.registry import Registry
from rocketpy.broker_core.store_path import store_path
from rocketpy.connector.backends import opened as opened_backend
from rocketpy.connector.read_options import ReadOptions
from rocketpy.spark_jobs.job_cluster import JobCluster, JobPlace, cluster_of
from rocketpy.spark_jobs.store_folder import SeenFolder, locked_folder, open_folder, opened

_LOCK_WAIT_S = 10.0


class Made(NamedTuple):
    """The next generation of a group: the number that it follows (0: none), and its bytes."""

    follows: int
    generation: bytes


class GroupPlace(Protocol):
    """Where groups are."""

    def registry(self) -> AbstractContextManager[Registry]:
        """Return members and generations, to be looked at."""

    def publish(self, made: Mapping[str, Made]) -> set[str]:
        """Make generations the newest; return the groups whose newest is another now."""


@dataclass(frozen=True, slots=True)
class GroupsInFolder:
    """The groups of a store."""

    seen: SeenFolder

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> GroupsInFolder:
        """Look which store is there.

        Raises:
            StoreNotFoundError: there is none.
        """
        folder = store_path(path).absolute()
        open_folder(folder).close()
        return cls(SeenFolder.at(folder))

    @contextmanager
    def registry(self) -> Iterator[Registry]:
        """Open the store, which must be the one that was seen."""
        self.seen.require()
        with opened(self.seen.path) as store:
            yield Registry(StoreRecords(store, self._refuse))

    def _refuse(self) -> AbstractContextManager[None]:
        raise ReadOnlyStoreError(self.seen.path, "change members")

    def publish(self, made: Mapping[str, Made]) -> set[str]:
        """Write all files first; the lock is held to give them their names."""
        lock: Callable[[], AbstractContextManager[None]] = partial(
            locked_folder, self.seen.path, _LOCK_WAIT_S
        )
        with opened(self.seen.path) as store:
            return publish_generations(store.root, made, store.disk, lock)


@dataclass(frozen=True, slots=True)
class GroupsOnCluster:
    """The groups of a cluster."""

    options: ReadOptions

    @contextmanager
    def registry(self) -> Iterator[Registry]:
        """Connect to the cluster."""
        with opened_backend(self.options) as backend:
            yield backend.members().registry()

    def publish(self, made: Mapping[str, Made]) -> set[str]:
        """Write the records of one group after the other."""
        with self.registry() as registry:
            return {
                group
                for group, (follows, generation) in made.items()
                if not registry.publish(group, decode_generation(generation), follows=follows)
            }


def groups_at(place: JobPlace) -> GroupsInFolder | GroupsOnCluster:
    """Return the groups of a store's folder, or of a cluster.

    Raises:
        StoreNotFoundError: there is no store.
        OptionError: it is no address, or what goes with it is wrong.
    """
    cluster = cluster_of(place)
    if cluster is not None:
        return GroupsOnCluster(cluster.reading(view="groups"))
    assert not isinstance(place, JobCluster)
    return GroupsInFolder.at(place)
