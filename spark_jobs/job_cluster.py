"""Where a job works: a store's folder, or a cluster; and what a cluster is told apart by.

Jobs take a place as their callers have it: a path, or a text like rocketmq://ns1:9876;ns2:9876. A
cluster that wants to know who asks is given as a JobCluster, which names files; else the
environment says it. What only a folder has is refused by name: see `folder_of`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from rocketpy.broker_core.store_path import store_path
from rocketpy.connector.backends import opened
from rocketpy.connector.cluster_options import name_servers_of
from rocketpy.connector.read_options import ReadOptions
from rocketpy.spark_jobs.job_errors import JobRefusedError

_OPTIONS = {
    "namesrv_addr": "namesrvAddr",
    "credentials": "credentials",
    "tls": "tls",
    "request_timeout": "requestTimeout",
    "retry_timeout": "retryTimeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCluster:
    """A cluster, and how it is asked: as the options of format 'rocketpy' say it."""

    namesrv_addr: str
    credentials: str | None = None  # a file; without it, the environment says who asks
    tls: str | None = None  # a file, or `on`
    request_timeout: str | None = None
    retry_timeout: str | None = None

    def options(self) -> dict[str, str]:
        """Return the options of format 'rocketpy' that mean it."""
        given = {_OPTIONS[each.name]: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in given.items() if value is not None}

    def reading(self, **options: str) -> ReadOptions:
        """Return what reads it.

        Raises:
            OptionError: the address, or another option, is wrong.
        """
        return ReadOptions.parse({**self.options(), **options})

    def topics(self) -> set[str]:
        """Return the names of its topics.

        Raises:
            OptionError: it cannot be asked as it is given.
            UnreachableError: no name server answers.
        """
        with opened(self.reading(view="topics")) as backend:
            return {*backend.topics()}

    def __str__(self) -> str:
        cluster = self.reading(view="topics").cluster
        assert cluster is not None
        return str(cluster.access.address)


JobPlace = str | os.PathLike[str] | JobCluster


def cluster_of(place: JobPlace) -> JobCluster | None:
    """Return the cluster that a place is; None for a folder."""
    if isinstance(place, JobCluster):
        return place
    servers = name_servers_of(os.fspath(place))
    return None if servers is None else JobCluster(namesrv_addr=servers)


def folder_of(place: JobPlace, *, needs: str, instead: str) -> Path:
    """Return the folder that a place is, for what only a folder has.

    Raises:
        JobRefusedError: it is a cluster.
        StorePathError: it is a URI of something else.
    """
    cluster = cluster_of(place)
    if cluster is not None:
        reason = f"is a cluster, and {needs} the folder of a store; {instead}"
        raise JobRefusedError(str(cluster), reason)
    assert not isinstance(place, JobCluster)
    return store_path(place).absolute()
