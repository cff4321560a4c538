"""Dead letters of a group back to where they came from, each once, with an audit trail.

The store's ledger and the audit trail are the truth together: see replay_run.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.metadata.names import is_system_topic
from rocketpy.broker_core.retry.journal import Journal, locked_journal, read_journal
from rocketpy.broker_core.store_path import is_uri
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay_audit import ReplayAudit
from rocketpy.spark_jobs.replay_run import ReplayProgress, ReplayRun
from rocketpy.spark_jobs.store_folder import opened, replay_audit_of

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


def replay(
    spark: SparkSession,
    letters: DeadLetters,
    *,
    to: str | None = None,
    limit: int | None = None,
    rate: float | None = None,
    audit: str | None = None,
    dry_run: bool = False,
    command: str = "replay()",
    progress: ReplayProgress = lambda _done, _total: None,
) -> ReplayResult:
    """Bring dead letters back to their first topic, or to another; each once, in their order.

    `rate` is messages per second, at most; `limit` takes the oldest. `audit` is a folder for the
    Delta table, inside the store unless it is given with a group's first replay.

    Raises:
        TopicNotFoundError: the group has no dead letters, or a topic that they go to is missing.
        MessageRefusedError: an argument is wrong.
        ReplayRunningError: another process replays the same.
    """
    check(letters, to, limit, rate)
    known = read_journal(letters.root, letters.group)
    elsewhere = _elsewhere(letters.group, audit, known)
    location = elsewhere or replay_audit_of(letters.root, letters.group)
    if dry_run:
        trail = ReplayAudit(spark, location, known.id if known else "")
        return _would(trail, trail.without_replayed(letters.frame(spark)), to, limit)
    with locked_journal(letters.root, letters.group, elsewhere) as journal:
        trail = ReplayAudit(spark, location, journal.content.id)
        run = ReplayRun(spark, letters, journal, trail, to, command)
        finished = run.finish_earlier()
        topics = run.go(limit, rate, progress)
    return ReplayResult(
        run_id=run.run_id,
        audit=location,
        selected=sum(topics.values()),
        replayed=sum(topics.values()),
        topics=topics,
        finished=finished,
    )


def check(letters: DeadLetters, to: str | None, limit: int | None, rate: float | None) -> None:
    """Refuse what cannot be, as replay() does; needs no Spark."""
    if to is not None and is_system_topic(to):
        raise MessageRefusedError(f"to={to!r}", "it is a topic of RocketMQ's own; give another")
    if limit is not None and limit < 1:
        raise MessageRefusedError(f"limit={limit}", "give 1 or more")
    if rate is not None and not rate > 0:
        raise MessageRefusedError(f"rate={rate}", "give messages per second, more than 0")
    with opened(letters.root) as store:
        if store.topic(letters.topic) is None:
            raise TopicNotFoundError(letters.topic, store.topics.all())


def _elsewhere(group: str, asked: str | None, known: Journal | None) -> str | None:
    """Return where the audit is, if not in the store; a group has one audit, with all of it."""
    if asked is None:
        return known.audit if known else None
    location = asked if is_uri(asked) else str(Path(asked).absolute())
    if known is not None and location != known.audit:
        reason = f"replays of group {group!r} are noted in {known.audit or 'the store'}"
        raise MessageRefusedError(f"audit={asked!r}", f"{reason}; leave it out")
    return location


def _would(
    trail: ReplayAudit, letters: DataFrame, to: str | None, limit: int | None
) -> ReplayResult:
    """Return what a run would do."""
    if limit is not None:
        letters = letters.orderBy("queue_id", "queue_offset").limit(limit)
    where = F.coalesce(F.lit(to), "first_topic").alias("to_topic")
    topics, causes = dict[str, int](), dict[str | None, int]()
    for topic, cause, count in letters.groupBy(where, "cause").count().collect():
        topics[topic] = topics.get(topic, 0) + count
        causes[cause] = causes.get(cause, 0) + count
    sample = letters.withColumn("to_topic", where).orderBy("queue_id", "queue_offset")
    return ReplayResult(
        run_id=None,
        audit=trail.location,
        selected=sum(topics.values()),
        replayed=0,
        topics=topics,
        causes=causes,
        sample=tuple(sample.limit(_SAMPLE).collect()),
    )
