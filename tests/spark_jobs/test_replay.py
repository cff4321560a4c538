"""Dead letters brought back: what was asked for, once, whatever happens on the way."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.errors import (
    GroupNameError,
    MessageRefusedError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.retry.journal import read_journal
from rocketpy.broker_core.retry.trail import DeadLetterPlace
from rocketpy.console.changes.folder import FolderChanger
from rocketpy.spark_jobs import cli, replay_run
from rocketpy.spark_jobs.commands.replay import show
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay import ReplayResult, replay
from rocketpy.spark_jobs.replay_audit import ReplayAudit

ORDERS, POISON = 400, 20  # 5 %
DEAD = "%DLQ%billing"


@pytest.fixture
def dead(store: rocketpy.Store) -> rocketpy.Store:
    """A store with ten dead letters of two topics, of two tags, with different causes."""
    for number in range(10):
        topic = f"orders-{number % 2}"
        store.create_topic(topic, 2)
        time.sleep(0.002)  # each has a time of its own
        tag, why = ("paid", "time-out") if number < 5 else ("new", f"bad field {number}")
        receipt = store.send(
            topic, str(number), tags=tag, keys=[f"o-{number}"], properties={"amount": str(number)}
        )
        store.send_back(receipt, group="billing", delay_level=-1, cause=why)
    return store


def letters(store: rocketpy.Store, **selection: Any) -> DeadLetters:
    return DeadLetters(path=store.path, group="billing", **selection)


def replayed(store: rocketpy.Store, *topics: str) -> Counter[str]:
    """Bodies of messages that came back, and how often each."""
    found = Counter[str]()
    for topic in topics or ("orders-0", "orders-1"):
        for row in store.read(topic, columns="body,properties").read_all().to_pylist():
            if "ROCKETPY_REPLAY_RUN" in dict(row["properties"]):
                found[row["body"].decode()] += 1
    return found


def audited(spark: SparkSession, result: ReplayResult) -> list[int]:
    rows = spark.read.format("delta").load(result.audit).collect()
    return sorted(row["queue_offset"] for row in rows)


def consume(spark: SparkSession, store: rocketpy.Store, table: Path, poison: str) -> None:
    """Bill what can be billed, send the rest back."""

    def take(frame: DataFrame, batch_id: int) -> None:
        frame = frame.withColumn("fails", F.expr(poison)).persist()
        good = frame.where("not fails").select(F.col("body").cast("string").alias("order"))
        writer = good.write.format("delta").mode("append").option("txnAppId", "billing")
        writer.option("txnVersion", batch_id).save(str(table))
        why = F.concat(F.lit("no price in "), F.col("body").cast("string"))
        rocketpy.send_back(frame.where("fails"), group="billing", cause=why, path=store.path)
        frame.unpersist()

    reader = spark.readStream.format("rocketpy").option("path", str(store.path))
    reader = reader.option("topic", "orders").option("consumerGroup", "billing")
    writer = reader.load().writeStream.foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(table.parent / "checkpoint")).start().awaitTermination()


@pytest.mark.further
def test_poison_rows_end_as_dead_letters_and_come_in_after_the_fix(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    store.create_topic("orders", 4)
    store.create_group("billing", retry_max_times=0)
    bodies = [f"poison {n}" if n % 20 == 7 else f"order {n}" for n in range(ORDERS)]
    store.append("orders", pa.table({"body": bodies}))
    consume(spark, store, tmp_path / "table", "body like 'poison%'")

    def billed() -> list[str]:
        rows = spark.read.format("delta").load(str(tmp_path / "table")).collect()
        return sorted(row["order"] for row in rows)

    poison = [body for body in bodies if body.startswith("poison")]
    assert billed() == sorted(set(bodies) - set(poison))
    found = store.read(DEAD, columns="body,properties").read_all().to_pylist()
    causes = {row["body"].decode(): dict(row["properties"])["ROCKETPY_CAUSE"] for row in found}
    assert causes == {body: f"no price in {body}" for body in poison}
    assert len(found) == len(poison) == POISON

    first = replay(spark, letters(store))
    consume(spark, store, tmp_path / "table", "false")
    assert billed() == sorted(bodies)
    second = replay(spark, letters(store))
    assert (first.replayed, second.selected, second.replayed) == (POISON, 0, 0)
    assert audited(spark, first) == list(range(POISON))
    assert sum(end for _, end in store.queues("orders").values()) == ORDERS + POISON


def test_what_is_asked_for_is_selected(spark: SparkSession, dead: rocketpy.Store) -> None:
    died = dead.read(DEAD, columns="store_timestamp").read_all()["store_timestamp"]
    fifth = died.cast(pa.int64()).to_pylist()[5]

    def selected(limit: int | None = None, **selection: Any) -> list[str]:
        result = replay(spark, letters(dead, **selection), dry_run=True, limit=limit)
        assert (result.run_id, result.replayed) == (None, 0)
        assert sum(result.topics.values()) == sum(result.causes.values()) == result.selected
        return [row["keys"].removeprefix("o-") for row in result.sample]

    assert selected(tags="paid") == list("01234")
    assert selected(keys="o-3,o-8,none") == list("38")
    assert selected(cause="field 7") == list("7")
    assert selected(cause_pattern="field [78]$") == list("78")
    assert selected(since=fifth, tags="paid || new", limit=2) == list("56")
    assert selected(until=fifth) == list("01234")
    assert selected(sql="amount BETWEEN 4 AND 6 AND ROCKETPY_CAUSE STARTSWITH 'bad'") == list("56")
    assert replayed(dead) == Counter()
    assert read_journal(dead.path, "billing") is None


def test_what_the_console_brought_back_stays_back(
    spark: SparkSession, dead: rocketpy.Store
) -> None:
    dead.flush()
    changer = FolderChanger(dead.path)
    found = dead.read(DEAD, columns="queue_id,queue_offset,msg_id").read_all().to_pylist()
    places = [DeadLetterPlace(dead.config.broker_name, *each.values()) for each in found]
    chosen = [(places[0], "orders-0"), (places[3], "orders-1"), (places[5], "nowhere")]
    done = changer.replay("billing", chosen, shown=frozenset(), by="otto")
    assert [each.is_done for each in done] == [True, True, False]
    assert replay(spark, letters(dead), dry_run=True).selected == 8
    result = replay(spark, letters(dead))
    assert result.replayed == 8
    assert replayed(dead) == Counter(map(str, range(10)))


def test_all_go_elsewhere_if_asked_to_and_are_told_of(
    spark: SparkSession, dead: rocketpy.Store, tmp_path: Path
) -> None:
    dead.create_topic("second-try", 1)
    place = str(tmp_path / "audit")
    seen = list[tuple[int, int]]()
    result = replay(
        spark,
        letters(dead, tags="new"),
        to="second-try",
        audit=place,
        command="by hand",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert (result.topics, result.audit) == ({"second-try": 5}, place)
    assert seen == [(0, 5), (5, 5)]
    assert replayed(dead, "second-try") == Counter("56789")
    rows = spark.read.format("delta").load(place).orderBy("queue_offset").collect()
    assert [row["cause"] for row in rows] == [f"bad field {number}" for number in range(5, 10)]
    assert {(row["command"], row["run_id"]) for row in rows} == {("by hand", result.run_id)}
    with pytest.raises(MessageRefusedError, match=re.escape(place)):
        replay(spark, letters(dead), audit=str(tmp_path / "another"))
    assert replay(spark, letters(dead)).replayed == 5  # the others, and only them
    assert replayed(dead) == Counter("01234")


def test_a_run_that_fails_anywhere_is_finished_by_the_next(
    spark: SparkSession, dead: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_run, "CHUNK_ROWS", 4)

    def fails(*_: object, **__: object) -> None:
        raise OSError("here")

    def run_that_fails(target: object, name: str) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(target, name, fails)
            with pytest.raises(OSError, match="here"):
                replay(spark, letters(dead))

    run_that_fails(replay_run, "commit_staged")
    assert replayed(dead) == Counter()
    run_that_fails(ReplayAudit, "append")
    assert replayed(dead) == Counter("0123")  # in the log, and not in the audit
    result = replay(spark, letters(dead))
    assert (result.finished, result.replayed) == (4, 6)
    assert replayed(dead) == Counter("0123456789")
    assert audited(spark, result) == list(range(10))
    assert replay(spark, letters(dead)).replayed == 0


def test_a_rate_is_kept_by_waiting_between_chunks(
    spark: SparkSession, dead: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()
    clock = SimpleNamespace(monotonic=lambda: sum(waits), sleep=waits.append)
    monkeypatch.setattr(replay_run, "time", clock)
    assert replay(spark, letters(dead), rate=0.5, limit=4).replayed == 4
    assert waits == [0, 4]  # chunks of two: five seconds' worth are two and a half
    assert replayed(dead) == Counter("0123")


def test_the_command_tells_what_it_would_do(spark: SparkSession, dead: rocketpy.Store) -> None:
    assert spark.version
    assert cli.job_app.registered_commands
    command = ["job", "replay", str(dead.path), "billing", "--tags", "paid", "--dry-run"]
    dry = CliRunner().invoke(app, command)
    assert dry.exit_code == 0, dry.output
    for words in ("time-out", "o-0", "orders-1", "5 messages would be replayed"):
        assert words in dry.output
    assert replayed(dead) == Counter()


def test_the_command_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    result = ReplayResult(
        run_id="r-1", audit="/a", selected=3, replayed=3, topics={"orders": 3}, finished=2
    )
    show(result, Console())
    told = capsys.readouterr().out
    for words in ("orders", "3 messages replayed in run r-1", "audit of 2 messages", "trail is /a"):
        assert words in told


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"to": "absent"}, TopicNotFoundError, "absent"),
        ({"to": "%RETRY%billing"}, MessageRefusedError, "RocketMQ's own"),
        ({"limit": 0}, MessageRefusedError, "limit=0"),
        ({"rate": 0}, MessageRefusedError, "rate=0"),
    ],
)
def test_a_replay_that_cannot_be(
    spark: SparkSession,
    dead: rocketpy.Store,
    arguments: dict[str, Any],
    error: type[RocketPyError],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        replay(spark, letters(dead), **arguments)


def test_a_group_without_dead_letters(spark: SparkSession, store: rocketpy.Store) -> None:
    with pytest.raises(TopicNotFoundError, match="%DLQ%billing"):
        replay(spark, letters(store))


def test_a_selection_that_cannot_be(store: rocketpy.Store) -> None:
    with pytest.raises(GroupNameError, match="' '"):
        DeadLetters(path=store.path, group="a b")
    with pytest.raises(MessageRefusedError, match="no regular expression"):
        letters(store, cause_pattern="(")
