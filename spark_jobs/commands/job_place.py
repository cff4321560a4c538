"""Where the work of a job is, as its command was told: a folder, or a cluster with its access."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocketpy.broker_core.cli.connecting import noted_access
from rocketpy.broker_core.cli.place import Place

if TYPE_CHECKING:
    from rocketpy.spark_jobs.job_cluster import JobCluster


def place_of(typed: Place) -> Path | JobCluster:
    """Return the folder, or the cluster with the files that the options before a command name."""
    from rocketpy.spark_jobs.job_cluster import JobCluster

    if isinstance(typed.at, Path):
        return typed.at
    access = noted_access()
    return JobCluster(namesrv_addr=str(typed.at), credentials=access.credentials, tls=access.tls)
