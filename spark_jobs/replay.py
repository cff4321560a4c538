"""Dead letters of a group back to where they came from, each once, with an audit trail.

Of a folder, the store's ledger and the audit trail are the truth together: see replay_run.py. Of a
cluster, the audit trail and what the sink finds in the topics are: see cluster_replay.py.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.metadata.names import is_system_topic
from rocketpy.broker_core.retry.journal import Journal, locked_journal, read_journal
from rocketpy.broker_core.store_path import is_uri
from rocketpy.spark_jobs.cluster_replay import check_cluster, replay_on_cluster
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay_audit import ReplayAudit, without_trail
from rocketpy.spark_jobs.replay_result import ReplayProgress, ReplayResult, would_replay
from rocketpy.spark_jobs.replay_run import ReplayRun
from rocketpy.spark_jobs.store_folder import opened, replay_audit_of

__all__ = ["ReplayResult", "check", "replay"]


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
    Delta table, inside the store unless it is given with a group's first replay; with a cluster it
    has to be given, and the same each time.

    Raises:
        TopicNotFoundError: the group has no dead letters, or a topic that they go to is missing.
        MessageRefusedError: an argument is wrong.
        ReplayRunningError: another process replays the same.
    """
    check(letters, to, limit, rate)
    if letters.cluster is not None:
        return replay_on_cluster(
            spark,
            letters,
            to=to,
            limit=limit,
            rate=rate,
            audit=audit,
            dry_run=dry_run,
            command=command,
            progress=progress,
        )
    known = read_journal(letters.root, letters.group)
    elsewhere = _elsewhere(letters.group, audit, known)
    location = elsewhere or replay_audit_of(letters.root, letters.group)
    if dry_run:
        trail = ReplayAudit(spark, location, known.id if known else "")
        found = without_trail(spark, letters.frame(spark), letters.root, letters.group)
        return would_replay(location, trail.without_replayed(found), to, limit)
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
    if letters.cluster is not None:
        check_cluster(letters)
        return
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
