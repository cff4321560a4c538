"""rocketpy.open: new stores, missing ones, read-only ones, closed ones, several at once."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    ReadOnlyStoreError,
    StoreClosedError,
    StoreNotFoundError,
)


def test_a_missing_store_is_made(path: Path, small: rocketpy.StoreConfig) -> None:
    rocketpy.open(path, config=small).close()
    assert (path / "commitlog").is_dir()


def test_a_missing_store_is_not_made_to_be_read(path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match=r"is not a store \(it has no commitlog folder\)"):
        rocketpy.open(path, read_only=True)
    assert not path.exists()


def test_a_folder_of_something_else_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(StoreNotFoundError, match="open it for writing to make a new store"):
        rocketpy.open(tmp_path, read_only=True)


def test_a_path_may_be_a_string(path: Path, small: rocketpy.StoreConfig) -> None:
    with rocketpy.open(str(path), config=small) as store:
        assert store.path == path
        assert repr(store) == f"<rocketpy store {path} (open)>"


def test_a_flush_that_is_neither_is_refused(path: Path) -> None:
    with pytest.raises(MessageRefusedError, match="flush='never': give 'sync' or 'async'"):
        rocketpy.open(path, flush="never")  # type: ignore[arg-type]


def test_what_was_sent_is_there_after_reopening(
    path: Path, store: rocketpy.Store, small: rocketpy.StoreConfig
) -> None:
    store.send("t", b"kept", keys=["k"])
    store.close()
    with rocketpy.open(path, config=small) as again:
        assert again.read("t").read_all()["body"].to_pylist() == [b"kept"]
        assert again.query("t", key="k").num_rows == 1
        assert again.send("t", b"next").queue_offset == 1


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda store: store.send("t", b"x"), "cannot send"),
        (lambda store: store.append("t", pa.table({"body": ["x"]})), "cannot append"),
        (lambda store: store.create_topic("u"), "cannot create a topic"),
        (lambda store: store.commit("g", "t", {0: 0}), "cannot commit"),
        (lambda store: store.clean(), "cannot clean"),
    ],
)
@pytest.mark.usefixtures("store")
def test_a_store_opened_to_be_read_refuses_changes(action: object, words: str, path: Path) -> None:
    assert callable(action)
    with (
        rocketpy.open(path, read_only=True) as reader,
        pytest.raises(ReadOnlyStoreError, match=f"opened with read_only=True: {words}"),
    ):
        action(reader)


def test_a_store_opened_to_be_read_changes_nothing(path: Path, store: rocketpy.Store) -> None:
    store.send("t", b"x")
    store.close()
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")}
    with rocketpy.open(path, read_only=True) as reader:
        reader.flush()
        reader.read("t").read_all()
        list(reader.verify())
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*")} == before


@pytest.mark.parametrize(
    "action",
    [
        lambda store: store.send("t", b"x"),
        lambda store: store.append("t", pa.table({"body": ["x"]})),
        lambda store: store.create_topic("u"),
        lambda store: store.commit("g", "t", {0: 0}),
        lambda store: store.committed("g", "t"),
        lambda store: store.read("t"),
        lambda store: store.scan(),
        lambda store: store.query("t", key="k"),
        lambda store: store.get("0" * 32),
        lambda store: store.queues("t"),
        lambda store: store.offset_by_time("t", 0, 0),
        lambda store: store.flush(),
        lambda store: store.clean(),
        lambda store: store.verify(),
    ],
)
def test_a_closed_store_refuses_everything(
    action: object, path: Path, small: rocketpy.StoreConfig
) -> None:
    assert callable(action)
    with rocketpy.open(path, config=small) as store:
        store.create_topic("t", queues=1)
    with pytest.raises(StoreClosedError, match=r"was closed; open it again with rocketpy\.open"):
        action(store)


def test_closing_twice_is_fine(store: rocketpy.Store, path: Path) -> None:
    store.close()
    store.close()
    assert not (path / "abort").exists()
    rocketpy.open(path, config=store.config).close()


def test_an_open_store_bears_the_mark_of_one(path: Path, store: rocketpy.Store) -> None:
    assert (path / "abort").exists()
    store.close()
    assert not (path / "abort").exists()


def test_the_mark_stays_until_the_last_one_closes(path: Path, store: rocketpy.Store) -> None:
    other = rocketpy.open(path, config=store.config)
    store.close()
    assert (path / "abort").exists()
    other.close()
    assert not (path / "abort").exists()


def test_a_store_that_nobody_holds_any_more_is_closed(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    store = rocketpy.open(path, config=small)
    del store
    gc.collect()
    assert not (path / "abort").exists()


def test_a_store_whose_folder_was_removed_says_so_when_it_is_closed(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    store = rocketpy.open(path, config=small)
    shutil.rmtree(path)
    with pytest.raises(StoreNotFoundError):
        store.close()
    store.close()  # the second time is fine, as always
    assert not path.exists()


def test_a_store_in_a_removed_folder_is_let_go_in_silence_at_the_end(tmp_path: Path) -> None:
    program = (
        "import rocketpy, shutil, sys\n"
        "store = rocketpy.open(sys.argv[1])\n"
        "store.create_topic('t', 1)\n"
        "store.send('t', b'gone')\n"
        "shutil.rmtree(sys.argv[1])\n"
    )
    path = tmp_path / "temporary"
    ended = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    assert not path.exists()


def test_two_openers_of_one_process_append_in_turn(path: Path, store: rocketpy.Store) -> None:
    with rocketpy.open(path, config=store.config) as other:
        for number in range(6):
            (store, other)[number % 2].send("t", f"{number}")
        assert [int(b) for b in other.read("t").read_all()["body"].to_pylist()] == list(range(6))


def test_a_small_record_checksum_store_is_read_without_checksums(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=replace(small, record_checksum=False)) as store:
        store.create_topic("t", queues=1)
        store.send("t", b"plain")
    with rocketpy.open(path, config=small) as store:
        store.send("t", b"sealed")
        assert store.read("t").read_all()["body"].to_pylist() == [b"plain", b"sealed"]
        assert list(store.verify()) == []
