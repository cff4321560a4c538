"""Copies of the golden store, opened to be written to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from tests.golden.recorded import Row, keys_of, queue_ranges, rows_of

import rocketpy

END = 43798  # where the log of the golden store ends: 43438 + 360


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("commitlog", "consumequeue", "index")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }


def test_opening_and_closing_changes_no_message_queue_or_index(copied_path: Path) -> None:
    before = files(copied_path)
    rocketpy.open(copied_path).close()
    assert files(copied_path) == before


def test_opening_to_read_changes_nothing_at_all(copied_path: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in copied_path.rglob("*"))
    with rocketpy.open(copied_path, read_only=True) as store:
        store.read("lab_plain").read_all()
    assert sorted((path, path.stat().st_mtime_ns) for path in copied_path.rglob("*")) == before


def test_a_message_sent_goes_behind_the_last_one(copied_path: Path) -> None:
    with rocketpy.open(copied_path) as store:
        receipt = store.send("lab_plain", b"one more", queue_id=2, tags="new", keys=["added"])
    assert receipt.physical_offset == END
    assert receipt.queue_offset == queue_ranges()["lab_plain", 2][1]


def test_what_was_sent_and_appended_is_read_back_with_what_was_there(
    copied_path: Path, recorded: list[Row]
) -> None:
    more = pa.table({"body": ["a", "b", "c"], "keys": [["k1"], ["k2", "shared"], []]})
    with rocketpy.open(copied_path) as store:
        store.send("lab_keys", b"one more", queue_id=0, keys=["added"])
        store.append("lab_keys", more)
    with rocketpy.open(copied_path, read_only=True) as store:
        rows = rows_of(store.read("lab_keys", columns="*"))
        found = store.query("lab_keys", key="shared")
        assert list(store.verify()) == []
    old = [row for row in recorded if row["topic"] == "lab_keys"]
    assert [row for row in rows if row["commit_log_offset"] < END] == old
    new = sorted(
        (row for row in rows if row["commit_log_offset"] >= END),
        key=lambda row: int(row["commit_log_offset"]),
    )
    assert [row["body"] for row in new] == [b"one more", b"a", b"b", b"c"]
    assert found.num_rows == len(keys_of(old)["lab_keys", "shared"]) + 1


def test_a_store_without_its_queues_and_index_gets_them_anew(
    copied_path: Path, recorded: list[Row]
) -> None:
    before = files(copied_path)
    for folder in ("consumequeue", "index"):
        for path in sorted((copied_path / folder).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
    (copied_path / "abort").write_text("1")
    config = rocketpy.StoreConfig(
        consume_queue_file_entries=100, index_slots=500, index_entries=2000
    )
    with rocketpy.open(copied_path, config=config) as store:
        for row in recorded:
            assert rows_of(store.get(row["msg_id"])) == [row]
    after = files(copied_path)
    queues = {name for name in before if name.startswith("consumequeue")}
    assert {name: after.get(name) for name in queues} == {name: before[name] for name in queues}


def test_an_index_made_anew_holds_the_bytes_of_apaches(copied_path: Path) -> None:
    (name,) = (path.name for path in (copied_path / "index").iterdir())
    before = (copied_path / "index" / name).read_bytes()
    (copied_path / "index" / name).unlink()
    (copied_path / "abort").write_text("1")
    config = rocketpy.StoreConfig(index_slots=500, index_entries=2000)
    rocketpy.open(copied_path, config=config).close()
    (made,) = (copied_path / "index").iterdir()
    assert made.read_bytes() == before


def test_topics_groups_and_offsets_of_a_copy_can_be_added_to(copied_path: Path) -> None:
    with rocketpy.open(copied_path) as store:
        store.create_topic("ours", queues=2)
        store.commit("lab_group", "lab_plain", {1: 3})
    with rocketpy.open(copied_path, read_only=True) as store:
        assert store.topics()["ours"].write_queues == 2
        assert store.committed("lab_group", "lab_plain")[1] == 3
        assert store.committed("lab_group", "lab_retry") == {0: 2, 1: 2, 2: 1, 3: 1}
