"""Repair: what it rebuilds is what was there, and what is lost is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.broker_core.storage.damaged_stores import (
    FILE_SIZE,
    contents,
    make_store,
    overwrite,
    problems,
    records,
    rows,
)
from tests.interop import golden

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import StoreLockedError, StoreNotFoundError
from rocketpy.broker_core.storage.repair import (
    RepairReport,
    RepairTargetError,
    repair_in_place,
    repair_to,
)
from rocketpy.broker_core.storage.repair.placeholders import LostOffsets


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "store")


@pytest.fixture(params=["to a new folder", "in place"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def repair(store: Path, way: str) -> RepairReport:
    if way == "in place":
        return repair_in_place(store)
    before = contents(store)
    report = repair_to(store, store.with_name("mended"))
    assert contents(store) == before, "the old store is only read"
    return report


# --- the queues and the index alone -----------------------------------------------------------


def test_apaches_own_queues_and_index_are_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    apache = golden.unpack(tmp_path)
    report = repair_to(apache, tmp_path / "mended")
    assert report.records == len(golden.messages())
    assert report.is_whole
    assert contents(tmp_path / "mended" / "consumequeue") == contents(apache / "consumequeue")
    (old,), (new,) = (contents(path / "index").values() for path in (apache, tmp_path / "mended"))
    assert new == old
    assert contents(tmp_path / "mended" / "config") == contents(apache / "config")
    assert contents(tmp_path / "mended" / "timerlog") == contents(apache / "timerlog")
    assert problems(tmp_path / "mended") == []


@pytest.mark.parametrize(
    "lost", ["consumequeue", "index", "consumequeue/orders/1", "checkpoint", "rocketpy/tail"]
)
def test_what_was_deleted_is_rebuilt(store: Path, way: str, lost: str) -> None:
    before, whole = contents(store), rows(store)
    path = store / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    report = repair(store, way)
    assert report.is_whole
    assert report.records == len(whole)
    assert report.topics == {"logs": 100, "orders": 200}
    assert rows(report.path) == whole
    assert problems(report.path) == []
    if lost != "consumequeue":  # else the size of its files is forgotten
        rebuilt = contents(report.path, ignore=("rocketpy", "index", "checkpoint", "lock"))
        assert rebuilt == {name: before[name] for name in rebuilt}


def test_messages_are_found_by_key_again(store: Path, way: str) -> None:
    shutil.rmtree(store / "index")
    report = repair(store, way)
    with rocketpy.open(report.path, read_only=True) as mended:
        assert mended.query("logs", key="k4").column("queue_offset").to_pylist() == [1]
        assert mended.query("orders", key="every2").num_rows > 20


def test_a_damaged_queue_is_rebuilt(store: Path, way: str) -> None:
    whole = rows(store)
    file = store / "consumequeue" / "orders" / "0" / f"{320:020d}"
    file.write_bytes(bytes(100) + b"\xff" * 60 + file.read_bytes()[160:])
    report = repair(store, way)
    assert report.is_whole
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_an_index_cut_short_does_not_stop_the_repair(store: Path, way: str) -> None:
    whole = rows(store)
    for file in (store / "index").iterdir():
        file.write_bytes(file.read_bytes()[:1001])
    report = repair(store, way)
    assert report.is_whole
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_extended_queues_are_rebuilt(tmp_path: Path, way: str) -> None:
    store = make_store(tmp_path / "store", consume_queue_ext=True, consume_queue_ext_file_size=512)
    whole = rows(store)
    damaged = next((store / "consumequeue_ext" / "logs" / "0").iterdir())
    damaged.write_bytes(b"\x11" * 512)
    report = repair(store, way)
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_a_repaired_store_goes_on_where_it_was(store: Path, way: str) -> None:
    shutil.rmtree(store / "consumequeue" / "logs")
    report = repair(store, way)
    with rocketpy.open(report.path) as mended:
        assert mended.send("logs", b"new").queue_offset == 100
        assert mended.committed("billing", "orders") == {0: 10, 1: 5}
    assert problems(report.path) == []


# --- a damaged log ----------------------------------------------------------------------------


@pytest.mark.parametrize("has_checksums", [True, False])
def test_behind_damage_all_messages_keep_their_numbers(
    tmp_path: Path, way: str, has_checksums: bool
) -> None:
    store = make_store(tmp_path / "store", record_checksum=has_checksums)
    whole = rows(store)
    place, size = records(store)[99]  # the 34th message of orders/0
    overwrite(store, place + 95, b"\xff\x00\xff")  # in its body
    report = repair(store, way)
    assert [tuple(skipped[:2]) for skipped in report.skipped] == [(place, place + size)]
    assert report.lost == (LostOffsets("orders", 0, 33, 34),)
    del whole["orders", 0, 33]
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_the_last_message_of_a_queue_is_known_to_be_lost_by_its_old_queue(
    store: Path, way: str
) -> None:
    place, _ = records(store)[-3]  # orders/0 has none behind it
    overwrite(store, place + 100, b"\xff\x00\xff")
    report = repair(store, way)
    assert report.lost == (LostOffsets("orders", 0, 99, 100),)
    assert problems(report.path) == []


def test_a_torn_tail_is_cut(store: Path, way: str) -> None:
    whole = rows(store)
    place, size = records(store)[-1]
    overwrite(store, place + 100, bytes(size - 100))
    report = repair(store, way)
    assert report.log_end == place
    assert [skipped.reason for skipped in report.skipped] == ["torn off the end"]
    assert report.lost == (LostOffsets("orders", 1, 99, 100),)
    del whole["orders", 1, 99]
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_nonsense_behind_the_end_is_cut(store: Path, way: str) -> None:
    whole = rows(store)
    place, size = records(store)[-1]
    overwrite(store, place + size, b"nonsense")
    report = repair(store, way)
    assert [skipped.size for skipped in report.skipped] == [8]
    assert report.lost == ()
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_a_missing_file_of_the_log_is_passed(store: Path, way: str) -> None:
    whole = rows(store)
    (store / "commitlog" / f"{FILE_SIZE:020d}").unlink()
    report = repair(store, way)
    assert [tuple(skipped[:2]) for skipped in report.skipped] == [(FILE_SIZE, 2 * FILE_SIZE)]
    gone = {place for place, row in whole.items() if row["commit_log_offset"] // FILE_SIZE == 1}
    assert rows(report.path) == {place: whole[place] for place in whole.keys() - gone}
    assert sum(lost.end - lost.start for lost in report.lost) == len(gone)
    assert problems(report.path) == []


def test_a_file_of_the_log_that_was_cut_short_gets_its_size_back(store: Path, way: str) -> None:
    path = store / "commitlog" / f"{FILE_SIZE:020d}"
    path.write_bytes(path.read_bytes()[:5000])
    report = repair(store, way)
    assert (report.path / "commitlog" / path.name).stat().st_size == FILE_SIZE
    assert report.lost
    assert problems(report.path) == []


def test_a_damaged_blank_record_costs_no_message(store: Path, way: str) -> None:
    whole = rows(store)
    place, size = max(record for record in records(store) if record[0] < FILE_SIZE)
    overwrite(store, place + size, b"\xee" * 8)
    report = repair(store, way)
    assert [tuple(skipped[:2]) for skipped in report.skipped] == [(place + size, FILE_SIZE)]
    assert report.lost == ()
    assert rows(report.path) == whole
    assert problems(report.path) == []


@pytest.mark.parametrize("damage", ["start", "all of a file", "everything"])
def test_damage_at_the_start_is_passed(store: Path, way: str, damage: str) -> None:
    whole = rows(store)
    end = {"start": 300, "all of a file": FILE_SIZE, "everything": 10 * FILE_SIZE}[damage]
    for file in (store / "commitlog").iterdir():
        start = int(file.name)
        if start < end:
            overwrite(store, start, b"\xee" * min(end - start, FILE_SIZE))
    report = repair(store, way)
    assert [each for each in problems(report.path) if "billing" not in each] == []
    assert rows(report.path).items() <= whole.items()
    assert bool(rows(report.path)) == (damage != "everything")


def test_a_repaired_store_can_be_repaired_again(store: Path, way: str) -> None:
    places = [place for place, _ in records(store)]
    for number in (50, 51, 120, 250):
        overwrite(store, places[number] + 4, b"\0")
    first = repair(store, way)
    once = rows(first.path)
    again = repair_in_place(first.path)
    assert again.skipped == ()
    assert again.lost == ()
    assert first.placeholders == 4
    assert rows(again.path) == once
    assert problems(again.path) == []


# --- records whose header is not true ---------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        pytest.param(20, (5).to_bytes(8, "big"), id="queue offset too low"),
        pytest.param(20, (60).to_bytes(8, "big"), id="queue offset too high"),
        pytest.param(20, (1 << 50).to_bytes(8, "big"), id="queue offset beyond any disk"),
        pytest.param(20, b"\xff" * 8, id="queue offset below zero"),
        pytest.param(12, (7).to_bytes(4, "big"), id="another queue"),
        pytest.param(12, b"\xff" * 4, id="queue below zero"),
    ],
)
def test_a_header_that_its_neighbours_contradict_is_not_believed(
    tmp_path: Path, way: str, at: int, wrong: bytes
) -> None:
    store = make_store(tmp_path / "store", record_checksum=False)
    whole = rows(store)
    place, size = records(store)[99]
    overwrite(store, place + at, wrong)
    report = repair(store, way)
    assert [tuple(skipped[:2]) for skipped in report.skipped] == [(place, place + size)]
    assert report.lost == (LostOffsets("orders", 0, 33, 34),)
    del whole["orders", 0, 33]
    assert rows(report.path) == whole
    assert problems(report.path) == []


def test_a_record_that_slipped_into_another_queue_does_not_stay_there(
    tmp_path: Path, way: str
) -> None:
    store = make_store(tmp_path / "store", record_checksum=False)
    whole = rows(store)
    overwrite(store, records(store)[99][0] + 12, (1).to_bytes(4, "big"))
    report = repair(store, way)
    assert report.lost == (LostOffsets("orders", 0, 33, 34),)
    del whole["orders", 0, 33]
    assert rows(report.path) == whole


def test_a_topic_that_leads_out_of_the_store_is_not_followed(tmp_path: Path, way: str) -> None:
    store = make_store(tmp_path / "store", record_checksum=False)
    place, size = records(store)[99]
    data = (store / "commitlog" / f"{place - place % FILE_SIZE:020d}").read_bytes()
    at = data.index(b"\x06orders", place % FILE_SIZE)
    overwrite(store, place - place % FILE_SIZE + at + 1, b"../out")
    report = repair(store, way)
    assert not (store / "out").exists()
    assert [tuple(skipped[:2]) for skipped in report.skipped] == [(place, place + size)]
    assert problems(report.path) == []


def test_of_a_topic_made_anew_the_new_messages_count(tmp_path: Path, way: str) -> None:
    store = make_store(tmp_path / "store")
    shutil.rmtree(store / "consumequeue" / "logs")  # as Apache's broker deletes a topic
    topics = store / "config" / "topics.json"
    topics.write_text(topics.read_text().replace('"logs"', '"another"'))
    with rocketpy.open(store) as opened:
        opened.create_topic("logs", queues=1)
        for number in range(30):
            opened.send("logs", f"new {number}")
    report = repair(store, way)
    found = rows(report.path)
    bodies = [found["logs", 0, n]["body"] for n in range(30)]
    assert bodies == [f"new {n}".encode() for n in range(30)]
    assert ("logs", 0, 30) not in found
    assert report.repeated == 100
    assert not report.is_whole  # messages of the log have no entry


# --- safety -----------------------------------------------------------------------------------


def test_in_place_what_was_replaced_is_kept(store: Path) -> None:
    before = contents(store)
    place, size = records(store)[99]
    overwrite(store, place + 95, b"\xff\x00\xff")
    damaged = contents(store / "commitlog")
    report = repair_in_place(store, clock=ManualClock(1_700_000_000_000))
    assert report.replaced == store / "rocketpy" / "replaced-20231114T221320Z"
    kept = contents(report.replaced)
    saved = kept.pop(f"damaged/{place:020d}")
    name = f"{place - place % FILE_SIZE:020d}"
    assert saved == damaged[name][place % FILE_SIZE : place % FILE_SIZE + size]
    moved = ("consumequeue", "index", "checkpoint", "rocketpy/tail", "rocketpy/queues")
    assert kept == {name: data for name, data in before.items() if name.startswith(moved)}


def test_in_place_a_store_that_is_open_is_left_alone(store: Path) -> None:
    with rocketpy.open(store):
        before = contents(store)
        with pytest.raises(StoreLockedError):
            repair_in_place(store)
        assert contents(store) == before


def test_an_open_store_can_be_repaired_to_a_new_folder(store: Path, tmp_path: Path) -> None:
    with rocketpy.open(store) as opened:
        opened.send("logs", b"while open")
        report = repair_to(store, tmp_path / "mended")
    assert report.is_whole
    assert problems(report.path) == []
    assert rows(report.path) == rows(store)


def test_after_a_repair_the_store_counts_as_stopped_cleanly(store: Path, way: str) -> None:
    (store / "abort").write_text("1")
    assert not (repair(store, way).path / "abort").exists()


def test_nothing_is_repaired_onto_something_else(store: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    for target in (taken, taken / "file", store, store / "rocketpy" / "mended"):
        with pytest.raises(RepairTargetError):
            repair_to(store, target)
    assert contents(taken) == {"file": b""}


def test_an_empty_folder_may_be_the_target(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mended").mkdir()
    assert repair_to(store, tmp_path / "mended").records == 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mended", "store"]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        repair_to(tmp_path / "nothing", tmp_path / "mended")
    with pytest.raises(StoreNotFoundError):
        repair_in_place(tmp_path / "nothing")


def test_an_empty_store_stays_empty(tmp_path: Path, way: str) -> None:
    with rocketpy.open(tmp_path / "store"):
        pass
    report = repair(tmp_path / "store", way)
    assert (report.records, report.topics, report.is_whole) == (0, {}, True)
    assert problems(report.path) == []


def test_a_copy_is_as_sparse_as_the_store(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", 10, commit_log_file_size=64 << 20)
    report = repair_to(store, tmp_path / "mended")
    (file,) = (report.path / "commitlog").iterdir()
    assert file.stat().st_size == 64 << 20
    assert file.stat().st_blocks * 512 < 1 << 20
