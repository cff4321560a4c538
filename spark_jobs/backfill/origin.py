"""Whether a store is the one that a table was filled from.

The last chunk of a job noted the check sum of its first record. A disk that was mounted elsewhere
is the same store; another store at the same path is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.backfill.store_log import StoreLog
from rocketpy.spark_jobs.job_errors import JobRefusedError

_REMEDY = "give the store that it was filled from, or another job_name to add this one"


def check_origin(
    log: StoreLog,
    table: BackfillTable,
    reached: tuple[int, int],
    known: Mapping[str, Any] | None,
) -> None:
    """Raise unless the table holds a part of this log.

    `reached` is the table's position, and where the log ends.
    """
    position, end = reached
    commit = next(table.commits(), None)
    if position > end:
        reason = f"holds the log up to {position}, but that of {log.path} ends at {end}: it is"
        raise JobRefusedError(table.name, f"{reason} another store, or lost its end; {_REMEDY}")
    if commit is not None and commit.note["from"] >= log.begin():
        record = log.record(commit.note["from"])
        if record is not None and record != commit.note["record"]:
            reason = f"was filled from another store: its record at {commit.note['from']} is not"
            raise JobRefusedError(table.name, f"{reason} that of {log.path}; {_REMEDY}")
    elif commit is None and known is not None and known["store"] != log.path:
        reason = f"was filled from {known['store']}, and its history does not tell whether that is"
        remedy = 'if so, set "store" in the table\'s property'
        raise JobRefusedError(
            table.name,
            f"{reason} {log.path} now; {remedy} 'rocketpy.backfill.{table.job}'; else {_REMEDY}",
        )
