"""Messages into a Delta table: each once, however often a run dies, and again for more.

How far a table is, is in the table, and changes with the rows: of a store's folder the physical
offset up to which it holds the log (run.py), of a cluster the offsets of its queues
(topics_run.py). The way back is restore.py.
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
from rocketpy.spark_jobs.backfill.estimate import Estimate, TopicEstimate
from rocketpy.spark_jobs.backfill.run import BackfillProgress, BackfillRun
from rocketpy.spark_jobs.backfill.selection import BackfillSelection
from rocketpy.spark_jobs.backfill.settings import (
    BackfillOptions,
    BackfillReport,
    BackfillSettings,
    QueueStretch,
    Stretch,
    check_job_name,
)
from rocketpy.spark_jobs.backfill.topics_run import TopicsRun
from rocketpy.spark_jobs.job_cluster import JobCluster, JobPlace, cluster_of
from rocketpy.spark_jobs.job_errors import JobRefusedError

if TYPE_CHECKING:  # of `typing` from Python 3.11 on
    from typing_extensions import Unpack

JOB_NAME = "backfill"

__all__ = [
    "BackfillOptions",
    "BackfillReport",
    "BackfillSelection",
    "BackfillSettings",
    "Estimate",
    "JobCluster",
    "JobRefusedError",
    "QueueStretch",
    "Stretch",
    "TopicEstimate",
    "backfill",
    "body_format",
    "estimate",
]


def backfill(
    spark: SparkSession,
    store: JobPlace,
    table: str | Path,
    *,
    topics: Sequence[str] | str = (),
    job_name: str = JOB_NAME,
    progress: BackfillProgress = lambda _done, _total, _rows: None,
    **settings: Unpack[BackfillOptions],
) -> BackfillReport:
    """Bring a Delta table up to what a store or a cluster holds now; return what was done.

    `store` is the folder of a store, or a cluster: a text like rocketmq://ns1:9876;ns2:9876, or a
    JobCluster where files say how it is reached. Of a cluster topics have to be chosen.
    `table` is a folder, or the name of a table in the catalog: a text without a slash. Only what
    the table lacks is copied; run it as often as you like. A table may hold several jobs, such as
    one for each store, by different names. Settings are those of BackfillOptions, explained at
    BackfillSettings and BackfillSelection: `since="2026-11-01"`,
    `body=body_format("json", "id BIGINT")`.

    Raises:
        JobRefusedError: an argument is wrong, the table does not fit, or messages are gone.
        CorruptStoreError: a record is damaged, and `skip_damaged` is not given.
        UnreachableError: servers of the cluster do not answer.
    """
    return _run(spark, store, table, topics, job_name, settings, progress).run()


def estimate(
    spark: SparkSession,
    store: JobPlace,
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
    store: JobPlace,
    table: str | Path,
    topics: Sequence[str] | str,
    job_name: str,
    given: BackfillOptions,
    progress: BackfillProgress = lambda _done, _total, _rows: None,
) -> BackfillRun | TopicsRun:
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
    cluster = cluster_of(store)
    if cluster is not None:
        return TopicsRun(spark, cluster, target, settings, progress)
    assert not isinstance(store, JobCluster)
    selection.of_folder()
    return BackfillRun(spark, str(store_path(store).absolute()), target, settings, progress)
