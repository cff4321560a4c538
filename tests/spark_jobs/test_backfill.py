"""A store into a Delta table: all of it, once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.spark_jobs import cli
from rocketpy.spark_jobs.backfill import JobRefusedError, backfill, estimate
from rocketpy.spark_jobs.backfill.copying import DAY
from rocketpy.spark_jobs.backfill.delta_table import BackfillTable
from rocketpy.spark_jobs.backfill.settings import COLUMNS

T0 = 1_794_787_200_000 - 20_000  # twenty seconds before a midnight in UTC
COUNT, FURTHER = 60, pytest.mark.further
SMALL = rocketpy.StoreConfig(
    commit_log_file_size=4096,
    max_message_size=3000,
    consume_queue_file_entries=5,
    index_slots=5,
    index_entries=20,
    disk_max_used_ratio=0.0,  # what is expired goes at any hour
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(T0)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    """Sixty messages of two topics and two days, in some ten files of the log."""
    with rocketpy.open(tmp_path / "store", config=SMALL, clock=clock) as opened:
        opened.create_topic("orders", queues=2)
        opened.create_topic("parcels", queues=1)
        send(opened, clock, range(COUNT))
        yield opened


def send(store: rocketpy.Store, clock: ManualClock, numbers: range) -> None:
    for number in numbers:
        topic = "parcels" if number % 5 == 4 else "orders"
        body = f"{number:0{number * 37 % 1000 + 2}d}"
        properties = {"region": "eu"} if number % 2 else None
        store.send(topic, body, tags="ab"[number % 2], keys=f"k{number}", properties=properties)
        clock.advance(1000)


def copied(spark: SparkSession, table: Path | str) -> DataFrame:
    return spark.read.format("delta").load(str(table)).sort("commit_log_offset")


def held(spark: SparkSession, store: Path | str, **options: str) -> DataFrame:
    """What the source itself reads of a store, as rows of a table."""
    given = {"scan": "commitlog", "topicPattern": ".*", "columns": ",".join(COLUMNS), **options}
    frame = spark.read.format("rocketpy").options(**given).load(str(store))
    return frame.selectExpr("*", f"{DAY} AS day").sort("commit_log_offset")


def assert_equal(table: DataFrame, store: DataFrame) -> None:
    # What may be null is the table's own; chispa does not look into maps for it.
    assert_df_equality(table, store.to(table.schema), ignore_nullable=True)


def numbers(table: DataFrame) -> list[int]:
    return [int(bytes(row["body"])) for row in table.select("body").collect()]


def test_the_table_is_the_store_row_by_row_and_grows_with_it(
    spark: SparkSession, store: rocketpy.Store, clock: ManualClock, tmp_path: Path
) -> None:
    seen: list[tuple[int, int, int]] = []
    first = backfill(
        spark,
        store.path,
        tmp_path / "table",
        chunk_bytes=15_000,
        progress=lambda *done: seen.append(done),
    )
    assert_equal(copied(spark, tmp_path / "table"), held(spark, store.path))
    assert (first.rows, first.scan, first.start) == (COUNT, "commitlog", 0)
    assert (first.chunks, first.position) == (len(seen) - 1, seen[-1][1]) == (3, first.size_bytes)
    assert [rows for _, _, rows in seen] == sorted(rows for _, _, rows in seen)
    days = {str(row["day"]) for row in copied(spark, tmp_path / "table").collect()}
    assert days == {"2026-11-15", "2026-11-16"}
    log = [*(tmp_path / "table" / "_delta_log").glob("*.json")]

    assert backfill(spark, store.path, tmp_path / "table").rows == 0
    assert len([*(tmp_path / "table" / "_delta_log").glob("*.json")]) == len(log)
    send(store, clock, range(COUNT, COUNT + 7))
    again = backfill(spark, store.path, tmp_path / "table")
    assert (again.rows, again.start, again.chunks) == (7, first.position, 1)
    assert_equal(copied(spark, tmp_path / "table"), held(spark, store.path))


@pytest.mark.further
def test_lost_queues_a_moved_disk_and_named_topics_make_no_difference(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    by_queues = backfill(spark, store.path, tmp_path / "named", topics="orders", chunk_bytes=20_000)
    assert (by_queues.scan, by_queues.chunks) == ("queues", 2)
    orders = held(spark, store.path, topicPattern="orders")
    assert_equal(copied(spark, tmp_path / "named"), orders)
    store.close()
    shutil.rmtree(store.path / "consumequeue")
    (tmp_path / "disk").mkdir()
    shutil.move(store.path, tmp_path / "disk" / "store")
    lost = tmp_path / "disk" / "store"
    shutil.rmtree(lost / "config")
    for folder, _, _ in os.walk(lost):
        Path(folder).chmod(0o555)
    try:
        again = backfill(spark, lost, tmp_path / "named", topics="orders")
        assert (again.rows, again.start) == (0, by_queues.position)
        report = backfill(spark, lost, tmp_path / "lost", topics="orders")
        assert (report.scan, report.rows) == ("commitlog", by_queues.rows)
        assert_equal(copied(spark, tmp_path / "lost"), copied(spark, tmp_path / "named"))
        with pytest.raises(JobRefusedError, match="without files; read the log itself"):
            backfill(spark, lost, tmp_path / "x", topics="orders", scan="queues")
    finally:
        for folder, _, _ in os.walk(lost):
            Path(folder).chmod(0o755)


@pytest.mark.further
def test_a_store_of_apache_is_copied_with_and_without_its_queues(
    spark: SparkSession, apache_store: str, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(apache_store, bare)
    shutil.rmtree(bare / "consumequeue")
    expected = held(spark, apache_store).persist()
    topics = sorted({row["topic"] for row in expected.select("topic").collect()})
    assert len(topics) > 3  # rows are gathered by topic
    for path, scan in ((apache_store, "queues"), (apache_store, "commitlog"), (bare, "auto")):
        table = tmp_path / f"{Path(path).name}-{scan}"
        report = backfill(spark, path, table, topics=topics, scan=scan)
        assert (report.rows, report.scan == "queues") == (expected.count(), scan == "queues")
        assert_equal(copied(spark, table), expected)
        assert len(copied(spark, table).inputFiles()) <= len(topics) + 2
    expected.unpersist()


def test_a_run_that_fails_before_or_after_any_commit_is_gone_on_with(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fault(Exception):
        pass

    append, create = BackfillTable.append, BackfillTable._create
    steps = 0

    def failing_create(*arguments: Any) -> None:
        create(*arguments)
        raise Fault

    def failing_append(*arguments: Any, **named: Any) -> None:
        nonlocal steps
        steps += 1
        if steps % 2 == 0:  # each chunk fails once before its commit, and once behind it
            append(*arguments, **named)
        raise Fault

    monkeypatch.setattr(BackfillTable, "_create", failing_create)
    monkeypatch.setattr(BackfillTable, "append", failing_append)
    runs = 1
    while runs < 20:
        try:
            backfill(spark, store.path, tmp_path / "table", chunk_bytes=15_000)
            break
        except Fault:
            runs += 1
    assert (runs, steps) == (8, 6)  # the table, three chunks twice, and one that finds all done
    assert_equal(copied(spark, tmp_path / "table"), held(spark, store.path))


@pytest.mark.further
def test_another_run_of_the_same_job_is_noticed(
    spark: SparkSession,
    store: rocketpy.Store,
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = tmp_path / "table"

    def overtake(done: int, total: int, rows: int) -> None:  # noqa: ARG001
        if done == 0:
            backfill(spark, store.path, table)

    with pytest.raises(JobRefusedError, match=r"was at None and is at .* wait for it"):
        backfill(spark, store.path, table, progress=overtake)
    assert_equal(copied(spark, table), held(spark, store.path))
    # One that looked a moment too early is told afterwards, and how to mend it.
    end = backfill(spark, store.path, table).position
    send(store, clock, range(COUNT, COUNT + 3))
    monkeypatch.setattr(BackfillTable, "position", lambda _: None)
    with pytest.raises(JobRefusedError, match=f"RESTORE .* version 1, .* log_start={end}"):
        backfill(spark, store.path, table)
    monkeypatch.undo()
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1").collect()
    backfill(spark, store.path, table, job_name="again", log_start=end)
    assert_equal(copied(spark, table), held(spark, store.path))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"topic_pattern": "par.*"}, range(4, COUNT, 5)),
        ({"since": T0 + 5000, "until": "2026-11-16T00:00:00Z"}, range(5, 20)),
        pytest.param({"offsets": {"parcels": {"0": [2, 5]}}}, (14, 19, 24), marks=FURTHER),
        ({"topics": "orders", "offsets": {"orders": {"1": [0, 3]}}, "since": T0 + 2000}, None),
        pytest.param({"log_start": 4096, "log_end": 8192}, None, marks=FURTHER),
    ],
)
def test_what_is_asked_for_is_copied_and_estimated(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path, asked: dict[str, Any], expected: Any
) -> None:
    told = estimate(spark, store.path, tmp_path / "table", **asked)
    report = backfill(spark, store.path, tmp_path / "table", **asked)
    table = copied(spark, tmp_path / "table")
    if expected is None:
        condition = (
            "commit_log_offset >= 4096 and commit_log_offset < 8192"
            if "log_start" in asked
            else f"topic = 'orders' and queue_id = 1 and queue_offset < 3 "
            f"and unix_millis(store_timestamp) >= {T0 + 2000}"
        )
        assert_equal(table, held(spark, store.path).where(condition))
        assert table.count() > 0
    else:
        assert numbers(table) == list(expected)
    assert (told.is_exact, told.rows) == (True, report.rows) == (True, table.count())


@pytest.mark.further
def test_a_table_of_something_else_is_refused(
    spark: SparkSession, store: rocketpy.Store, clock: ManualClock, tmp_path: Path
) -> None:
    def refused(words: str, table: str = "table", path: Path = store.path, **asked: Any) -> None:
        with pytest.raises(JobRefusedError, match=words):
            backfill(spark, path, tmp_path / table, **asked)

    report = backfill(spark, store.path, tmp_path / "table", topics="orders")
    refused("topics was \\['orders'\\] and is \\[\\]; ask for the same")
    refused("columns was", topics="orders", columns=("topic", "body"))
    refused("it has no column 'flag'; leave that out", job_name="b", columns=("topic", "flag"))
    with rocketpy.open(tmp_path / "other", config=SMALL, clock=clock) as other:
        other.create_topic("orders", 2)
        refused("ends at 0: it is another store", path=other.path, topics="orders")
        other.append("orders", pa.table({"body": ["x" * 500] * 100}))
        assert other.path != store.path
        refused("was filled from another store", path=other.path, topics="orders")
        # By another name a second store comes into the same table.
        second = backfill(spark, other.path, tmp_path / "table", topics="orders", job_name="second")
    total = spark.read.format("delta").load(str(tmp_path / "table")).count()
    assert total == report.rows + second.rows == report.rows + 100

    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").touch()
    refused("has files, but is no Delta table", "files")
    plain = held(spark, store.path)
    plain.write.format("delta").save(str(tmp_path / "plain"))
    refused("partitioned by nothing", "plain")
    plain.selectExpr("topic", "day", "1 AS body").write.format("delta").partitionBy(
        "topic", "day"
    ).save(str(tmp_path / "numbers"))
    refused(
        "its column 'body' is int, but messages have binary", "numbers", columns=("topic", "body")
    )


def test_what_retention_deleted_between_runs_stops_the_job_or_is_told(
    spark: SparkSession, store: rocketpy.Store, clock: ManualClock, tmp_path: Path
) -> None:
    first = backfill(spark, store.path, tmp_path / "table", log_end=None)
    assert first.position is not None
    send(store, clock, range(COUNT, 2 * COUNT))
    oldest = [
        file
        for file in sorted((store.path / "commitlog").iterdir())
        if int(file.name) < first.position + 4096
    ]
    for file in oldest:
        os.utime(file, (0, 0))
    while store.clean():  # some at a time
        pass
    low = len(oldest) * 4096
    assert min((store.path / "commitlog").iterdir()).name == f"{low:020d}"
    with pytest.raises(JobRefusedError, match=f"the log from {first.position} up to {low}"):
        backfill(spark, store.path, tmp_path / "table")
    report = backfill(spark, store.path, tmp_path / "table", allow_gaps=True)
    assert report.gaps == ((first.position, low),)
    left = copied(spark, tmp_path / "table").where(f"commit_log_offset >= {low}")
    assert_equal(left, held(spark, store.path))
    assert report.rows == left.count() > 0


def test_damage_stops_the_job_or_is_left_out_and_told(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    whole = {row["commit_log_offset"]: row for row in held(spark, store.path).collect()}
    path, table = store.path, tmp_path / "table"
    store.close()
    spoilt = sorted(whole)[30]
    file = path / "commitlog" / f"{spoilt - spoilt % 4096:020d}"
    data = bytearray(file.read_bytes())
    data[spoilt % 4096 + 100] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptStoreError, match=f"{file} is corrupt at offset {spoilt}: .*skip_"):
        backfill(spark, path, table, chunk_bytes=15_000)
    after = min(offset for offset in whole if offset > spoilt)
    report = backfill(spark, path, table, chunk_bytes=15_000, skip_damaged=True)
    assert report.damaged == ((spoilt, after),)
    found = {row["commit_log_offset"]: row for row in copied(spark, table).collect()}
    assert found == {offset: row for offset, row in whole.items() if offset != spoilt}
    notes = [
        json.loads(json.loads(line)["commitInfo"].get("userMetadata", "{}"))
        for commit in sorted((table / "_delta_log").glob("*.json"))
        for line in commit.read_text().splitlines()
        if "commitInfo" in line
    ]
    assert [note["skipped"] for note in notes if "skipped" in note] == [[[spoilt, after]]]


@pytest.mark.further
def test_a_table_of_the_catalog_is_filled_and_compacted(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    spark.sql("DROP TABLE IF EXISTS backfilled")
    try:
        report = backfill(
            spark, store.path, "backfilled", topics="parcels", chunk_bytes=2_000, compact=True
        )
        rows = spark.table("backfilled").sort("commit_log_offset")
        assert_equal(rows, held(spark, store.path, topicPattern="parcels"))
        assert report.compacted_files > 0
        assert len(rows.inputFiles()) == 2  # of two days
        comments = {
            row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE backfilled").collect()
        }
        assert comments["day"] == "the day of store_timestamp, in UTC"
    finally:
        spark.sql("DROP TABLE IF EXISTS backfilled")


@pytest.mark.usefixtures("spark")
def test_the_command_line_shows_what_would_be_and_what_was(
    store: rocketpy.Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cli.job_app is not None

    def run(*more: str) -> str:
        words = ["job", "backfill", str(store.path), str(tmp_path / "table"), *more]
        ended = CliRunner().invoke(app, words)
        assert ended.exit_code == 0, ended.output
        return str(ended.output)

    told = json.loads(run("--dry-run", "--json"))
    assert (told["rows"], told["is_exact"], told["chunks"]) == (COUNT, True, 1)
    assert {each["topic"]: each["rows"] for each in told["topics"]} == {"orders": 48, "parcels": 12}
    text = run("--dry-run")
    assert "60 rows" in text
    assert "counted in the queues; nothing was done" in text
    done = json.loads(run("--json", "--chunk-size", "1m"))
    assert (done["rows"], done["position"]) == (COUNT, told["end"])
    assert "0 rows" in run()
    store.close()  # who has it open for writing restores what it loses
    shutil.rmtree(store.path / "consumequeue" / "parcels")
    guessed = json.loads(run("--dry-run", "--json", "--job-name", "other"))
    assert guessed["is_exact"] is False
    assert guessed["rows"] == pytest.approx(COUNT, rel=0.2)
    refused = CliRunner().invoke(
        app, ["job", "backfill", str(store.path), str(tmp_path / "t"), "--body", "json"]
    )
    assert (refused.exit_code, "needs a schema" in refused.output) == (2, True)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rocketpy.spark_jobs.backfill.backfill", interrupted)
    ended = CliRunner().invoke(app, ["job", "backfill", str(store.path), str(tmp_path / "t")])
    assert (ended.exit_code, "run the same again to go on" in ended.output) == (130, True)
