"""`df.writeStream.format("rocketpy")`: every batch once, over restarts and crashes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import rocketpy
from rocketpy.broker_core.storage.batches.ledger import Ledger, read_ledger, write_ledger
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import STAGED


class Lines:
    """A folder of text files, one micro-batch each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._count = spark, folder, 0
        folder.mkdir()

    def add(self, *lines: str) -> None:
        (self._folder / f"{self._count:03}.txt").write_text("\n".join(lines) + "\n")
        self._count += 1

    def stream(self) -> DataFrame:
        reader = self._spark.readStream.option("maxFilesPerTrigger", 1)
        return reader.text(str(self._folder)).withColumnRenamed("value", "body")


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path / "lines")


def start(
    frame: DataFrame,
    store: rocketpy.Store,
    checkpoint: Path,
    topic: str = "t",
    mode: str = "append",
) -> StreamingQuery:
    writer = frame.writeStream.format("rocketpy").queryName(checkpoint.name).outputMode(mode)
    writer = writer.option("path", str(store.path)).option("topic", topic)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def run(frame: DataFrame, store: rocketpy.Store, checkpoint: Path, topic: str = "t") -> None:
    assert start(frame, store, checkpoint, topic).awaitTermination(120)


def bodies(store: rocketpy.Store, topic: str = "t") -> list[str]:
    found = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
    return sorted(body.decode() for body in found)


def forget_last_commit(checkpoint: Path) -> None:
    """Take the checkpoint back to before Spark noted that the sink had committed."""
    newest = max((path for path in (checkpoint / "commits").glob("[0-9]*")), key=lambda p: p.name)
    newest.unlink()
    (checkpoint / "commits" / f".{newest.name}.crc").unlink(missing_ok=True)


def test_each_batch_is_stored_once_over_restarts(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    lines.add("a", "b")
    lines.add("c")
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b", "c"]
    lines.add("d")
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b", "c", "d"]
    assert list(read_ledger(store.path).numbers.values()) == [2]
    assert list((store.path / STAGED).iterdir()) == []


def test_a_batch_that_spark_runs_again_is_dropped(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    """The driver died between our commit and Spark's."""
    lines.add("a", "b")
    lines.add("c")
    run(lines.stream(), store, tmp_path / "check")
    forget_last_commit(tmp_path / "check")
    store.send("t", "of another")
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b", "c", "of another"]
    forget_last_commit(tmp_path / "check")
    lines.add("d")
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b", "c", "d", "of another"]


def test_a_batch_of_an_old_checkpoint_is_refused_and_never_dropped(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    lines.add("a")
    run(lines.stream(), store, tmp_path / "check")
    shutil.copytree(tmp_path / "check", tmp_path / "old")
    for line in "bc":
        lines.add(line)
        run(lines.stream(), store, tmp_path / "check")
    with pytest.raises(PySparkException, match=r"batch 1 of 'query .* topic t'.*new checkpoint"):
        run(lines.stream(), store, tmp_path / "old")
    assert bodies(store) == ["a", "b", "c"]
    assert list((store.path / STAGED).iterdir()) == []


def test_a_copied_checkpoint_writes_to_another_topic(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    lines.add("a")
    run(lines.stream(), store, tmp_path / "check")
    shutil.copytree(tmp_path / "check", tmp_path / "copy")
    lines.add("b")
    run(lines.stream(), store, tmp_path / "check")
    run(lines.stream(), store, tmp_path / "copy", topic="u")
    assert (bodies(store), bodies(store, "u")) == (["a", "b"], ["b"])


def test_a_batch_that_was_noted_without_its_topic_is_dropped(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    """The ledger is of a version whose names of queries had no topic."""
    lines.add("a")
    run(lines.stream(), store, tmp_path / "check")
    (name,) = read_ledger(store.path).numbers
    write_ledger(store.path, Ledger({name.partition(" topic ")[0]: 0}), Disk())
    forget_last_commit(tmp_path / "check")
    lines.add("b")
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b"]


def test_a_batch_of_which_only_a_task_was_done_is_run_again(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    lines.add("a")
    run(lines.stream(), store, tmp_path / "check")
    (writer,) = read_ledger(store.path).numbers
    left = store.path / STAGED / f"{writer.split()[1]}-1"
    left.mkdir()
    (left / "of-a-task-that-died").write_bytes(b"half a chunk")
    lines.add("b")
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b"]
    assert not left.exists()


def test_two_queries_write_to_one_topic(
    lines: Lines, store: rocketpy.Store, tmp_path: Path, spark: SparkSession
) -> None:
    others = Lines(spark, tmp_path / "others")
    for number in range(3):
        lines.add(f"a{number}")
        others.add(f"b{number}")
    queries = [
        start(frame.stream(), store, tmp_path / name)
        for name, frame in (("one", lines), ("two", others))
    ]
    assert all(query.awaitTermination(120) for query in queries)
    assert bodies(store) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert sorted(read_ledger(store.path).numbers.values()) == [2, 2]


def test_a_failed_batch_stores_nothing_and_can_be_run_again(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    store.create_topic("t")
    lines.add("a", "b")
    failing = lines.stream().selectExpr("CASE WHEN body = 'a' THEN body END AS body")
    with pytest.raises(PySparkException, match="is null"):
        run(failing, store, tmp_path / "check")
    assert bodies(store) == []
    run(lines.stream(), store, tmp_path / "check")
    assert bodies(store) == ["a", "b"]


def test_writes_inside_foreach_batch_are_stored_once(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    lines.add("a")

    def write(frame: DataFrame, batch_id: int) -> None:
        writer = frame.write.format("rocketpy").mode("append").option("path", str(store.path))
        writer.option("topic", "t").option("txnAppId", "app").option("txnVersion", batch_id).save()

    for _ in range(2):
        writer = lines.stream().writeStream.foreachBatch(write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "check")).start()
        assert query.awaitTermination(120)
        assert bodies(store) == ["a"]
        forget_last_commit(tmp_path / "check")


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("complete", "only ever added to"), ("update", "does not support Update mode")],
)
def test_only_append_is_an_output_mode(
    lines: Lines, store: rocketpy.Store, tmp_path: Path, mode: str, reason: str
) -> None:
    lines.add("a")
    counted = lines.stream().groupBy("body").count().select("body")
    with pytest.raises(PySparkException, match=reason):
        start(counted, store, tmp_path / "check", mode=mode).awaitTermination(120)


def test_a_version_is_refused_for_a_stream(
    lines: Lines, store: rocketpy.Store, tmp_path: Path
) -> None:
    lines.add("a")
    writer = lines.stream().writeStream.format("rocketpy").option("path", str(store.path))
    writer = writer.option("topic", "t").option("txnAppId", "app").option("txnVersion", 1)
    with pytest.raises(PySparkException, match="known by its checkpoint"):
        writer.option("checkpointLocation", str(tmp_path / "check")).trigger(
            availableNow=True
        ).start().awaitTermination(120)
