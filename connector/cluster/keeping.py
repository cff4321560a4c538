"""The cluster of a worker's last task, kept for the next one: to connect takes turns to servers.

Spark runs task after task in a worker, and a stream that keeps up has small ones.

J1  A task has it alone. What ended early or with an error is closed, not kept.
J2  It is for tasks that reach the cluster in the same way (servers, credentials, TLS, time-outs)
    and whose plan saw the same brokers; not for a forked process.
J3  It is kept for 30 s in all, as routes are: then name servers, and the files of TLS, are asked
    anew. Connections that were closed or spoken on meanwhile are opened anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rocketpy.connector.cluster.backend import ClusterBackend, open_cluster
from rocketpy.connector.cluster_options import ClusterOptions

_KEPT_S = 30.0


@dataclass(frozen=True, slots=True)
class _Kept:
    """A backend without a task, and for whom it is."""

    options: ClusterOptions
    seen: object
    pid: int
    opened_s: float
    backend: ClusterBackend

    def fits(self, options: ClusterOptions, seen: object) -> bool:
        is_young = time.monotonic() - self.opened_s < _KEPT_S
        return is_young and (self.options, self.seen, self.pid) == (options, seen, os.getpid())


_kept: list[_Kept] = []  # one, or none


@contextmanager
def kept_cluster(options: ClusterOptions, seen: object) -> Iterator[ClusterBackend]:
    """Open a cluster for the length of a `with`, or take the one of the task before."""
    mine = _taken(options, seen)
    if mine is None:
        backend = open_cluster(options, seen)
        mine = _Kept(options, seen, os.getpid(), time.monotonic(), backend)
    try:
        yield mine.backend
    except BaseException:
        mine.backend.close()
        raise
    close_kept()
    _kept.append(mine)


def _taken(options: ClusterOptions, seen: object) -> _Kept | None:
    if _kept and _kept[0].fits(options, seen):
        found = _kept.pop()
        found.backend.drop_lost()
        return found
    close_kept()
    return None


def close_kept() -> None:
    """Close what is kept."""
    while _kept:
        _kept.pop().backend.close()
