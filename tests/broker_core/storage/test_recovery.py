"""Opening a store after an unclean stop: what is cut, what is redone, what is refused."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset


@pytest.fixture
def crashed(
    tmp_path: Path, roomy: rocketpy.StoreConfig, clock: ManualClock
) -> tuple[Path, rocketpy.StoreConfig]:
    """A copy of an open store with 30 messages of two topics: what a killed process leaves."""
    with rocketpy.open(tmp_path / "live", config=roomy, clock=clock) as store:
        for topic in ("t", "u"):
            store.create_topic(topic, queues=2)
        for number in range(30):
            store.send("tu"[number % 2], f"{number}", keys=[f"k{number}"], queue_id=number // 2 % 2)
            clock.advance(1000)
            if number == 14:  # the others are not in the index yet
                store._store._writer.catch_up()
        copy = Path(shutil.copytree(tmp_path / "live", tmp_path / "crashed"))
    return copy, roomy


def log_file(path: Path) -> Path:
    return sorted((path / "commitlog").iterdir())[0]


def log_end(path: Path) -> int:
    return len(log_file(path).read_bytes().rstrip(b"\0"))


def forget_flushed(path: Path) -> None:
    """As if nothing had been synced yet: only then may the end of the log be cut."""
    with (path / "rocketpy" / "tail").open("r+b") as file:
        file.seek(512)
        file.write(bytes(16))


def bodies(store: rocketpy.Store) -> list[int]:
    return [int(body) for body in store.scan().read_all()["body"].to_pylist()]


def check_all(path: Path, config: rocketpy.StoreConfig, count: int) -> None:
    """Open the store for writing and find the first `count` messages by every way."""
    with rocketpy.open(path, config=config) as store:
        assert bodies(store) == list(range(count))
        by_queue = [b for topic in "tu" for b in store.read(topic).read_all()["body"].to_pylist()]
        assert sorted(map(int, by_queue)) == list(range(count))
        for number in range(30):
            found = store.query("tu"[number % 2], key=f"k{number}").num_rows
            assert found == (1 if number < count else 0)
        assert list(store.verify()) == []
        store.send("t", b"99")


Crashed = tuple[Path, rocketpy.StoreConfig]


def test_a_store_that_was_killed_has_all_that_was_sent(crashed: Crashed) -> None:
    check_all(*crashed, 30)


def test_a_second_opening_finds_the_same(crashed: Crashed) -> None:
    path, config = crashed
    check_all(path, config, 30)
    with rocketpy.open(path, config=config) as store:
        assert bodies(store) == [*range(30), 99]


@pytest.mark.parametrize("keep", [0, 1, 8, 88, 100])
def test_a_torn_last_record_is_cut(keep: int, crashed: Crashed) -> None:
    path, config = crashed
    forget_flushed(path)
    end = log_end(path)
    with rocketpy.open(path, config=config, read_only=True) as reader:
        start = reader.scan(columns=["commit_log_offset"]).read_all()[0][-1].as_py()
    with log_file(path).open("r+b") as file:
        file.seek(start + keep)
        file.write(bytes(end - start - keep))
    check_all(path, config, 29)


@pytest.mark.parametrize("folder", ["consumequeue", "index"])
def test_lost_queues_and_index_are_made_anew(folder: str, crashed: Crashed) -> None:
    path, config = crashed
    shutil.rmtree(path / folder)
    check_all(path, config, 30)


def test_entries_without_records_are_cut(crashed: Crashed) -> None:
    path, config = crashed
    forget_flushed(path)
    with rocketpy.open(path, config=config, read_only=True) as reader:
        places = reader.scan(columns=["commit_log_offset"]).read_all()[0].to_pylist()
    with log_file(path).open("r+b") as file:
        file.seek(places[20])
        file.write(bytes(config.commit_log_file_size - places[20]))
    check_all(path, config, 20)


def test_damage_below_what_was_durable_is_refused_and_nothing_is_cut(crashed: Crashed) -> None:
    path, config = crashed
    with rocketpy.open(path, config=config):
        pass
    (path / "abort").write_text("1")
    with rocketpy.open(path, config=config, read_only=True) as reader:
        places = reader.scan(columns=["commit_log_offset"]).read_all()[0].to_pylist()
    with log_file(path).open("r+b") as file:
        file.seek(places[20] + 90)
        file.write(b"????")
    before = log_file(path).read_bytes()
    with pytest.raises(
        CorruptStoreError, match=r"the log was durable up to .*rocketpy store verify"
    ):
        rocketpy.open(path, config=config)
    assert log_file(path).read_bytes() == before
    assert (path / "abort").exists()


def test_whole_records_behind_a_torn_one_are_set_aside(crashed: Crashed) -> None:
    path, config = crashed
    forget_flushed(path)
    with rocketpy.open(path, config=config, read_only=True) as reader:
        places = reader.scan(columns=["commit_log_offset"]).read_all()[0].to_pylist()
    data = log_file(path).read_bytes()
    with log_file(path).open("r+b") as file:
        file.seek(places[20] + 4)
        file.write(b"\0\0\0\0")
    check_all(path, config, 20)
    kept = b"".join(p.read_bytes() for p in sorted((path / "rocketpy" / "cut").iterdir()))
    assert data[places[21] : places[22]] in kept


def test_what_apache_left_undispatched_is_dispatched(crashed: Crashed) -> None:
    path, config = crashed
    end = log_end(path)
    record = encode_record(
        Message(
            topic="t",
            stored_body=b"30",
            properties={"KEYS": "k30"},
            queue_id=1,
            queue_offset=QueueOffset(7),
            physical_offset=PhysicalOffset(end),
            store_timestamp_ms=1_800_000_000_000,
        )
    )
    with log_file(path).open("r+b") as file:
        file.seek(end)
        file.write(record)
    with rocketpy.open(path, config=config) as store:
        assert bodies(store) == list(range(31))
        assert store.query("t", key="k30").num_rows == 1
        assert store.queues("t")[1] == (0, 8)


HOSTILE = ["../../evil", "..", ".", "", "a/b", "/absolute", "nul\0", "x" * 300]


@pytest.mark.parametrize("topic", HOSTILE)
def test_a_topic_that_is_no_file_name_makes_no_file(
    topic: str, path: Path, roomy: rocketpy.StoreConfig, caplog: pytest.LogCaptureFixture
) -> None:
    rocketpy.open(path, config=roomy).close()
    shutil.rmtree(path / "rocketpy")
    good = encode_record(Message(topic="good", stored_body=b"1"))
    bad = encode_record(
        Message(topic=topic, stored_body=b"2", physical_offset=PhysicalOffset(len(good)))
    )
    data = (good + bad).ljust(roomy.commit_log_file_size, b"\0")
    (path / "commitlog").mkdir(exist_ok=True)
    (path / "commitlog" / ("0" * 20)).write_bytes(data)
    (path / "abort").write_text("1")
    around = path.parent.parent
    before = {p for p in around.rglob("*") if path not in p.parents}
    with caplog.at_level(logging.WARNING), rocketpy.open(path, config=roomy) as store:
        assert store.scan().read_all().num_rows == 2
        assert store.read("good").read_all().num_rows == 1
    assert {p for p in around.rglob("*") if path not in p.parents} == before
    assert [p.name for p in (path / "consumequeue").iterdir()] == ["good"]


def test_a_negative_queue_id_makes_no_queue(path: Path, roomy: rocketpy.StoreConfig) -> None:
    rocketpy.open(path, config=roomy).close()
    shutil.rmtree(path / "rocketpy")
    record = encode_record(Message(topic="good", stored_body=b"1", queue_id=-1))
    (path / "commitlog" / ("0" * 20)).write_bytes(record.ljust(roomy.commit_log_file_size, b"\0"))
    (path / "abort").write_text("1")
    with rocketpy.open(path, config=roomy) as store:
        assert store.scan().read_all().num_rows == 1
    assert not (path / "consumequeue" / "good" / "-1").exists()


def test_keys_of_all_topics_are_found_after_two_crashes(
    tmp_path: Path, roomy: rocketpy.StoreConfig, clock: ManualClock
) -> None:
    """Index files roll inside a replay of several topics; then the newest of them is dropped."""
    config = replace(roomy, index_slots=5, index_entries=20)
    with rocketpy.open(tmp_path / "live", config=config, clock=clock) as store:
        for topic in "ab":
            store.create_topic(topic, queues=1)
        for number in range(40):
            store.send("ab"[number % 2], b"x", keys=[f"k{number}"])
            clock.advance(1000)
        store._store._writer.catch_up()
        path = Path(shutil.copytree(tmp_path / "live", tmp_path / "copy"))
    shutil.rmtree(path / "index")
    for _ in range(2):
        (path / "abort").write_text("1")
        with rocketpy.open(path, config=config, clock=clock) as store:
            found = [store.query("ab"[n % 2], key=f"k{n}").num_rows for n in range(40)]
            assert found == [1] * 40
            assert list(store.verify()) == []


def test_a_queue_that_begins_behind_zero_is_filled_before(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    config = replace(small, retention_hours=None)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        for number in range(20):
            store.send("t", f"{number:01000d}")
    for old in sorted((path / "commitlog").iterdir())[:3]:
        old.unlink()
    shutil.rmtree(path / "consumequeue")
    (path / "abort").write_text("1")
    with rocketpy.open(path, config=config) as store:
        low, high = store.queues("t")[0]
        assert (low, high) == (9, 20)
        found = [int(body) for body in store.read("t").read_all()["body"].to_pylist()]
        assert found == list(range(9, 20))
        assert store.send("t", b"next").queue_offset == 20


def test_a_bulk_append_that_was_torn_is_kept_as_far_as_it_is_whole(
    tmp_path: Path, roomy: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(tmp_path / "live", config=roomy) as store:
        store.create_topic("t", queues=1)
        store.append("t", pa.table({"body": [f"{number}" for number in range(50)]}))
        path = Path(shutil.copytree(tmp_path / "live", tmp_path / "copy"))
    forget_flushed(path)
    with rocketpy.open(path, config=roomy, read_only=True) as reader:
        places = reader.scan(columns=["commit_log_offset"]).read_all()[0].to_pylist()
    with log_file(path).open("r+b") as file:
        file.seek(places[30] + 50)
        file.write(bytes(roomy.commit_log_file_size - places[30] - 50))
    with rocketpy.open(path, config=roomy) as store:
        found = [int(body) for body in store.read("t").read_all()["body"].to_pylist()]
        assert found == list(range(30))
        assert list(store.verify()) == []


@pytest.mark.parametrize("has_folder", [True, False])
def test_what_a_crash_left_of_an_extension_whose_queue_got_no_file_is_gone(
    tmp_path: Path, roomy: rocketpy.StoreConfig, has_folder: bool
) -> None:
    config = replace(roomy, consume_queue_ext=True, consume_queue_ext_file_size=512)
    with rocketpy.open(tmp_path / "live", config=config) as store:
        store.create_topic("t", queues=2)
        store.send("t", "one", queue_id=0)
        path = Path(shutil.copytree(tmp_path / "live", tmp_path / "crashed"))
    torn = path / "consumequeue_ext" / "t" / "1" / f"{0:020}"
    torn.parent.mkdir()
    torn.write_bytes((bytes(13) + b"torn" + bytes(20) + b"more").ljust(512, b"\0"))
    if has_folder:
        (path / "consumequeue" / "t" / "1").mkdir()
    with rocketpy.open(path, config=config) as store:
        assert list(store.verify()) == []
        store.send("t", "two", queue_id=1, tags="a")
        assert list(store.verify()) == []
        assert store.read("t", tags="a").read_all().num_rows == 1
