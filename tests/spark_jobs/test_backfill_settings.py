"""What a backfill refuses, how it cuts the log, and what it thinks of queues: without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.spark_jobs.backfill.chunks import chunks_by_log, chunks_by_queues
from rocketpy.spark_jobs.backfill.estimate import counted, sampled
from rocketpy.spark_jobs.backfill.selection import BackfillSelection
from rocketpy.spark_jobs.backfill.settings import BackfillSettings, check_job_name
from rocketpy.spark_jobs.backfill.store_log import StoreLog
from rocketpy.spark_jobs.job_errors import JobRefusedError
from rocketpy.spark_jobs.restore import RestoreSettings

SMALL = rocketpy.StoreConfig(
    commit_log_file_size=65_536, max_message_size=30_000, consume_queue_file_entries=50
)
ROWS = 900

BAD: list[tuple[type, dict[str, Any], str]] = [
    (BackfillSelection, {"topics": ("a",), "topic_pattern": "b"}, "topics are named as well"),
    (BackfillSelection, {"topic_pattern": "a["}, "topic_pattern: 'a\\['"),
    (BackfillSelection, {"since": "yesterday"}, "since: is 'yesterday'; give milliseconds"),
    (BackfillSelection, {"since": 5, "until": 5}, "until: is 5, not behind since, 5"),
    (BackfillSelection, {"log_start": -1}, "log_start: is -1; give 0 or more"),
    (BackfillSelection, {"log_start": 9, "log_end": 8}, "log_end: is 8, not behind log_start, 9"),
    (BackfillSelection, {"offsets": {"a": {}}}, "have no queues for 'a'"),
    (BackfillSelection, {"offsets": {"a": {"x": [0, 1]}}}, "of a/x are"),
    (BackfillSelection, {"offsets": {"a": {"0": [1]}}}, "of a/0 are \\[1\\]; give them as"),
    (BackfillSelection, {"offsets": {"a": {"0": [2, 2]}}}, "of a/0 are"),
    (
        BackfillSelection,
        {"topics": ("b",), "offsets": {"a": {"0": [0, 1]}}},
        "topic 'a', which is not",
    ),
    (BackfillSettings, {"scan": "index"}, "scan: is 'index'; give auto, commitlog, queues"),
    (BackfillSettings, {"chunk_bytes": 0}, "chunk_bytes: is 0; give 1 or more"),
    (BackfillSettings, {"file_bytes": 0}, "file_bytes: is 0; give 1 or more"),
    (BackfillSettings, {"columns": ("topic", "bodi")}, "did you mean 'body'"),
    (BackfillSettings, {"columns": ("body",)}, "partitioned by 'topic'; name it as well"),
    (RestoreSettings, {"rate": 0}, "rate: is 0; give rows per second"),
    (RestoreSettings, {"batch_rows": 0}, "batch_rows: is 0; give 1 or more"),
    (RestoreSettings, {"to_topic": "%DLQ%g"}, "a topic of RocketMQ's own"),
]


@pytest.mark.parametrize(("kind", "given", "words"), BAD)
def test_a_wrong_setting_is_refused_with_a_remedy(
    kind: type, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobRefusedError, match=words):
        kind(**given)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 101, "ä"])
def test_a_job_has_a_plain_name(name: str) -> None:
    with pytest.raises(JobRefusedError, match="up to 100 letters"):
        check_job_name(name)
    assert check_job_name("nightly-2") == "nightly-2"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one message of `rare` to eight of `orders`."""
    path = tmp_path_factory.mktemp("backfill") / "store"
    with rocketpy.open(path, config=SMALL) as store:
        store.create_topic("orders", 3)
        store.create_topic("rare", 2)
        for _ in range(ROWS // 9):
            store.append("orders", pa.table({"body": ["x" * 200] * 8}))
            store.append("rare", pa.table({"body": ["y" * 100]}))
    return path


@pytest.fixture
def log(path: Path) -> Iterator[StoreLog]:
    with closing(StoreLog(str(path), BackfillSelection(topics=("rare",)))) as opened:
        yield opened


@pytest.mark.parametrize("size", [1, 1000, 10_000, 1 << 30])
@pytest.mark.parametrize("cut", [chunks_by_log, chunks_by_queues])
def test_chunks_follow_each_other_from_record_to_record(log: StoreLog, cut: Any, size: int) -> None:
    start, end = log.begin(), log.end()
    size = max(size, end // 40)
    chunks = list(cut(log, start, end, size))
    assert (chunks[0].start, chunks[-1].end) == (start, end)
    assert all(one.end == other.start for one, other in pairwise(chunks))
    assert all(log.is_boundary(chunk.end) for chunk in chunks)
    assert (len(chunks) > 1) == (size < end)


def test_chunks_by_queues_are_as_large_as_what_is_selected(log: StoreLog) -> None:
    start, end = log.begin(), log.end()
    selected = sum(each.size_bytes for each in counted(log, start, end))
    assert selected < end / 10
    chunks = list(chunks_by_queues(log, start, end, selected // 4))
    assert len(chunks) in (4, 5)
    assert all(chunk.topics == 1 for chunk in chunks)
    assert max(chunk.size_bytes for chunk in chunks) < selected // 3


def test_a_count_is_exact_and_a_sample_is_near(path: Path) -> None:
    with closing(StoreLog(str(path), BackfillSelection())) as log:
        exact = {each.topic: each for each in counted(log, 0, log.end())}
        near = {each.topic: each for each in sampled(log, 0, log.end())}
    assert {name: each.rows for name, each in exact.items()} == {"orders": 800, "rare": 100}
    assert exact.keys() == near.keys()
    for name, each in near.items():
        assert each.rows == pytest.approx(exact[name].rows, rel=0.3)
        assert (each.first_day, each.last_day) == (exact[name].first_day, exact[name].last_day)


def test_a_topic_that_the_store_does_not_know_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(TopicNotFoundError, match="ordres"):
        StoreLog(str(path), BackfillSelection(topics=("rare", "ordres")))
    shutil.copytree(path, tmp_path / "bare")
    for folder in ("config", "consumequeue"):
        shutil.rmtree(tmp_path / "bare" / folder)
    with closing(StoreLog(str(tmp_path / "bare"), BackfillSelection(topics=("ordres",)))) as log:
        assert sampled(log, 0, log.end()) == ()  # nobody can know


def test_queues_that_may_lack_messages_are_doubted(path: Path, tmp_path: Path) -> None:
    def fault(spoil: Any, *, is_strict: bool = True) -> str | None:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(path, tmp_path / "copy")
        spoil(tmp_path / "copy" / "consumequeue")
        with closing(
            StoreLog(str(tmp_path / "copy"), BackfillSelection(topics=("orders",)))
        ) as log:
            return log.queue_fault(log.end(), is_strict=is_strict)

    assert fault(lambda _: None) is None
    assert "without files" in (fault(shutil.rmtree) or "")
    assert "without files" in (fault(lambda queues: shutil.rmtree(queues / "orders" / "1")) or "")
    assert fault(lambda queues: shutil.rmtree(queues / "orders" / "1"), is_strict=False) is None
    files = sorted((path / "consumequeue" / "orders" / "0").iterdir())
    assert len(files) > 3

    def without(number: int) -> Any:
        return lambda queues: (queues / "orders" / "0" / files[number].name).unlink()

    assert "lacks its first files" in (fault(without(0)) or "")
    assert "lacks a file between others" in (fault(without(2)) or "")

    def cut(queues: Path) -> None:
        for queue in queues.glob("*/*"):
            newest = max(queue.iterdir())
            newest.write_bytes(bytes(newest.stat().st_size))

    assert "of the log, which ends at" in (fault(cut) or "")
