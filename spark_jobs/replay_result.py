"""What a replay did, or would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

ReplayProgress = Callable[[int, int], None]  # done, in all
_SAMPLE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What a run did, or in a dry run would do."""

    run_id: str | None  # None: a dry run
    audit: str
    selected: int  # dead letters that were asked for and not brought back before
    replayed: int
    topics: dict[str, int]  # how many to which topic
    finished: int = 0  # of an earlier run that had died
    causes: dict[str | None, int] = field(default_factory=dict)  # dry run: how many of which cause
    sample: tuple[Row, ...] = ()  # dry run


def would_replay(
    audit: str,
    letters: DataFrame,
    to: str | None,
    limit: int | None,
    order: Sequence[str] = ("queue_id", "queue_offset"),
) -> ReplayResult:
    """Return what a run would do with dead letters that were not brought back before."""
    if limit is not None:
        letters = letters.orderBy(*order).limit(limit)
    where = F.coalesce(F.lit(to), "first_topic").alias("to_topic")
    topics, causes = dict[str, int](), dict[str | None, int]()
    for topic, cause, count in letters.groupBy(where, "cause").count().collect():
        topics[topic] = topics.get(topic, 0) + count
        causes[cause] = causes.get(cause, 0) + count
    sample = letters.withColumn("to_topic", where).orderBy(*order)
    return ReplayResult(
        run_id=None,
        audit=audit,
        selected=sum(topics.values()),
        replayed=0,
        topics=topics,
        causes=causes,
        sample=tuple(sample.limit(_SAMPLE).collect()),
    )
