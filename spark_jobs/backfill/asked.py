"""Whether a run of a job asks for what its first run asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.backfill.settings import BackfillSettings
from rocketpy.spark_jobs.job_cluster import cluster_of
from rocketpy.spark_jobs.job_errors import JobRefusedError

_REMEDY = "ask for the same, give another job_name to add these, or take another table"


def check_asked(
    table: BackfillTable, known: Mapping[str, Any] | None, settings: BackfillSettings, store: str
) -> None:
    """Raise unless the job is new to the table, or selects what it selected before.

    `store` is the folder or the address that is read now: a job does not change between the two.

    Raises:
        JobRefusedError: it is another selection, or another kind of place.
    """
    if known is None:
        return
    asked = settings.described()
    if known["asked"] != asked:
        differing = [
            f"{name} was {known['asked'].get(name)!r} and is {asked.get(name)!r}"
            for name in sorted({*asked, *known["asked"]})
            if known["asked"].get(name) != asked.get(name)
        ]
        reason = f"the job {table.job!r} of this table selects other messages: "
        raise JobRefusedError(table.name, f"{reason}{', '.join(differing)}; {_REMEDY}")
    if (cluster_of(known["store"]) is None) != (cluster_of(store) is None):
        reason = f"the job {table.job!r} of this table reads {known['store']}, and not {store}"
        raise JobRefusedError(table.name, f"{reason}; {_REMEDY}")
