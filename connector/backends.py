"""Which backend the options mean: the only module that knows all kinds of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING

from rocketpy.connector.backend import Backend, SendingBack, Writing
from rocketpy.connector.read_options import ReadOptions

if TYPE_CHECKING:
    from rocketpy.connector.write_options import WriteOptions

Opener = Callable[[ReadOptions, object], Backend]


def _open_store(options: ReadOptions, seen: object) -> Backend:
    from rocketpy.connector.store.backend import open_store

    assert options.path is not None  # see opener_of
    return open_store(options.path, seen)


def _open_cluster(options: ReadOptions, seen: object) -> Backend:
    from rocketpy.connector.cluster.backend import open_cluster

    assert options.cluster is not None  # see opener_of
    return open_cluster(options.cluster, seen)


def opener_of(options: ReadOptions) -> Opener:
    """Return what opens the backend of the options: a store's folder, or a cluster."""
    return _open_store if options.cluster is None else _open_cluster


def open_backend(options: ReadOptions, seen: object = None) -> Backend:
    """Open the backend that the options name; `seen` is the identity that a planner found.

    Raises:
        OtherStoreError: it is another one: the path is not shared.
    """
    return opener_of(options)(options, seen)


def opened(options: ReadOptions, seen: object = None) -> AbstractContextManager[Backend]:
    """Open it for the length of a `with`."""
    return closing(open_backend(options, seen))


def opened_for_task(options: ReadOptions, seen: object) -> AbstractContextManager[Backend]:
    """Open it for the length of a task; in a worker, a cluster stays open for the next one."""
    if options.cluster is None:
        return opened(options, seen)
    from rocketpy.connector.cluster.keeping import kept_cluster

    return kept_cluster(options.cluster, seen)


def writing_of(options: WriteOptions) -> Writing:
    """Return what writes to the backend of the options: a store's folder, or a cluster."""
    if options.cluster is not None:
        from rocketpy.connector.cluster.writing import cluster_writing

        return cluster_writing(options)
    from rocketpy.connector.store.writing import store_writing

    return store_writing(options)


def sending_back_of(path: str | os.PathLike[str], *, group: str, delay_level: int) -> SendingBack:
    """Return what sends messages back to a group of a backend: so far a store's folder.

    Raises:
        StoreNotFoundError: there is no store at the path.
        GroupNameError, MessageRefusedError: the group cannot send back.
    """
    from rocketpy.connector.store.sending_back import store_sending_back

    return store_sending_back(path, group, delay_level)
