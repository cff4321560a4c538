"""Messages of a store into a Delta table: each once, however often a run dies, and again for more.

One number is the state: the physical offset up to which the table holds the store. It is in the
table, and changes with the rows. See run.py; the way back is restore.py.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from rocketpy.broker_core.store_path import store_path
from rocketpy.connector.registration import register
from rocketpy.spark_jobs.backfill.bodies import body_format
from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.backfill.errors import JobRefusedError
from rocketpy.spark_jobs.backfill.estimate import Estimate, TopicEstimate
from rocketpy.spark_jobs.backfill.run import BackfillProgress, BackfillRun
from rocketpy.spark_jobs.backfill.selection import BackfillSelection
from rocketpy.spark_jobs.backfill.settings import (
    BackfillOptions,
    BackfillReport,
    BackfillSettings,
    Stretch,
    check_job_name,
)

if TYPE_CHECKING:  # of `typing` from Python 3.11 on
    from typing_extensions import Unpack

JOB_NAME = "backfill"

__all__ = [
    "BackfillOptions",
    "BackfillReport",
    "BackfillSelection",
    "BackfillSettings",
    "Estimate",
    "JobRefusedError",
    "Stretch",
    "TopicEstimate",
    "backfill",
    "body_format",
    "estimate",
]


def backfill(
    spark: SparkSession,
    store: str | Path,
    table: str | Path,
    *,
    topics: Sequence[str] | str = (),
    job_name: str = JOB_NAME,
    progress: BackfillProgress = lambda _done, _total, _rows: None,
    **settings: Unpack[BackfillOptions],
) -> BackfillReport:
    """Bring a Delta table up to what a store holds now; return what was done.

    `table` is a folder, or the name of a table in the catalog: a text without a slash. Only what
    the table lacks is copied; run it as often as you like. A table may hold several jobs, such as
    one for each store, by different names. Settings are those of BackfillOptions, explained at
    BackfillSettings and BackfillSelection: `since="2026-11-01"`,
    `body=body_format("json", "id BIGINT")`.

    Raises:
        JobRefusedError: an argument is wrong, the table does not fit, or messages are gone.
        CorruptStoreError: a record is damaged, and `skip_damaged` is not given.
    """
    return _run(spark, store, table, topics, job_name, settings, progress).run()


def estimate(
    spark: SparkSession,
    store: str | Path,
    table: str | Path,
    *,
    topics: Sequence[str] | str = (),
    job_name: str = JOB_NAME,
    **settings: Unpack[BackfillOptions],
) -> Estimate:
    """Return what `backfill` would do, called the same way; nothing is changed.

    Raises:
        JobRefusedError: as `backfill`.
    """
    return _run(spark, store, table, topics, job_name, settings).estimate()


def _run(
    spark: SparkSession,
    store: str | Path,
    table: str | Path,
    topics: Sequence[str] | str,
    job_name: str,
    given: BackfillOptions,
    progress: BackfillProgress = lambda _done, _total, _rows: None,
) -> BackfillRun:
    selecting = {each.name for each in fields(BackfillSelection)}
    setting = {each.name for each in fields(BackfillSettings)} - {"selection"}
    for name in given:
        if name not in selecting | setting:
            near = difflib.get_close_matches(name, selecting | setting, n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else "see BackfillSettings and BackfillSelection"
            )
            raise JobRefusedError(name, f"there is no such setting; {hint}")
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    values: dict[str, Any] = dict(given)
    if "columns" in values:
        values["columns"] = tuple(values["columns"])
    selection = BackfillSelection(
        topics=names, **{name: values[name] for name in selecting & {*values}}
    )
    settings = BackfillSettings(
        selection=selection, **{name: values[name] for name in setting & {*values}}
    )
    register(spark)
    target = BackfillTable(spark, table, check_job_name(job_name))
    return BackfillRun(spark, str(store_path(store).absolute()), target, settings, progress)
