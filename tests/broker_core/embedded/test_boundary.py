"""Bad input of every kind: always an error of ours, with what to do, and nothing done."""

from __future__ import annotations

import errno
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.embedded.boundary import KINDS, StoreAccessError, as_store_error
from rocketpy.broker_core.errors import (
    ColumnError,
    DiskFullError,
    RocketPyError,
    StoreNotFoundError,
)
from rocketpy.broker_core.storage.disk import Disk

NOBODY = 65_534

# What is called with a store, words of the error.
BAD: list[tuple[Callable[[Any], object], str]] = [
    (lambda s: s.create_topic(None), "name=None: give a str"),
    (lambda s: s.create_topic("a", queues="4"), "queues='4': give a whole number"),
    (lambda s: s.create_topic("a", queues=4.0), "queues=4.0: give a whole number"),
    (lambda s: s.update_topic("orders", perm="6"), "perm='6': give a whole number"),
    (lambda s: s.send(3, "x"), "topic=3: give a str"),
    (lambda s: s.send(["orders"], "x"), "topic=['orders']: give a str"),
    (lambda s: s.send("orders", 3), "body=3: give bytes or str"),
    (lambda s: s.send("orders", None), "body=None: give bytes or str"),
    (lambda s: s.send("orders", "x", tags=["a"]), "tags=['a']: give a str"),
    (lambda s: s.send("orders", "x", keys=3), "keys=3: give a str or a list of them"),
    (lambda s: s.send("orders", "x", keys=[3]), "keys=[3]: give a str or a list of them"),
    (lambda s: s.send("orders", "x", properties=["a"]), "give a dict of str"),
    (lambda s: s.send("orders", "x", properties={"a": 3}), "property 'a': a str is wanted, not 3"),
    (lambda s: s.send("orders", "x", properties={3: "a"}), "give a dict of str"),
    (lambda s: s.send("orders", "x", queue_id="0"), "queue_id='0': give a whole number"),
    (lambda s: s.send("orders", "x", queue_id=0.5), "queue_id=0.5: give a whole number"),
    (lambda s: s.send("orders", "x", queue_id=True), "queue_id=True: give a whole number"),
    (lambda s: s.send("orders", "x", flag="3"), "flag='3': give a whole number"),
    (lambda s: s.send("orders", "x", delay_level="3"), "delay_level='3': give a whole number"),
    (lambda s: s.send("orders", "x", deliver_at="noon"), "deliver_at='noon': it is no time"),
    (lambda s: s.send("orders", "x", deliver_at=1.5), "deliver_at=1.5: it is no time"),
    (lambda s: s.append("orders", None), "not NoneType"),
    (lambda s: s.append("orders", 3), "not int"),
    (lambda s: s.append("orders", [3]), "rows are dicts, not int"),
    (lambda s: s.append(3, [{"body": "x"}]), "topic=3: give a str"),
    (lambda s: s.read(3), "topic=3: give a str"),
    (lambda s: s.read("orders", columns=3), "columns=3: give a str or a list of them"),
    (lambda s: s.read("orders", columns=[3]), "columns=[3]: give a str or a list of them"),
    (lambda s: s.read("orders", tags=3), "tags=3: give a str"),
    (lambda s: s.read("orders", sql=3), "sql=3: give a str"),
    (lambda s: s.read("orders", queue_id="0"), "queue_id='0': give a whole number"),
    (lambda s: s.read("orders", start="0"), "start='0': give an offset, or a dict of queue ids"),
    (lambda s: s.read("orders", start={"0": 1}), "give an offset, or a dict of queue ids"),
    (lambda s: s.read("orders", start_time="yesterday"), "start_time='yesterday': it is no time"),
    (lambda s: s.read("orders", end_time=1.5), "end_time=1.5: it is no time"),
    (lambda s: s.scan(start="0"), "start='0': give a whole number"),
    (lambda s: s.scan(sql=3), "sql=3: give a str"),
    (lambda s: s.query("orders", key=3), "key=3: give a str"),
    (lambda s: s.query("orders", key="k", start_time="x"), "start_time='x': it is no time"),
    (lambda s: s.get(3), "msg_id=3: give a str"),
    (lambda s: s.offset_by_time("orders", 0, "x"), "time='x': it is no time"),
    (lambda s: s.offset_by_time("orders", "0", 3), "queue_id='0': give a whole number"),
    (lambda s: s.stored_ms("orders", 0, "0"), "queue_offset='0': give a whole number"),
    (lambda s: s.queues(3), "topic=3: give a str"),
    (lambda s: s.create_group(3), "name=3: give a str"),
    (lambda s: s.create_group("g", retry_max_times="3"), "retry_max_times='3': give a whole"),
    (lambda s: s.committed(3, "orders"), "group=3: give a str"),
    (lambda s: s.commit("g", "orders", {"0": 1}), "give a dict of queue ids and offsets"),
    (lambda s: s.commit("g", "orders", [1]), "give a dict of queue ids and offsets"),
    (lambda s: s.join("g", "m", 3), "topics=3: give a str or a list of them"),
    (lambda s: s.join("g", "m", "orders", lease_ms="3"), "lease_ms='3': give a whole number"),
    (lambda s: s.rebalance("g", 3), "strategy=3: give a str"),
    (lambda s: s.send_back(3, group="g"), "give a receipt, an offset id, or"),
    (lambda s: s.send_back("00", group=3), "group=3: give a str"),
    (lambda s: s.recall(3), "by receipt or handle"),
    (lambda s: s.delivering(interval_s="1"), "interval_s='1': give a number"),
    (lambda _: rocketpy.open(None), "path=None: give the folder of a store"),  # type: ignore[arg-type]
    (lambda _: rocketpy.open(""), "path='': give the folder of a store"),
    (lambda _: rocketpy.open("a\0b"), "give the folder of a store"),
    (lambda s: rocketpy.open(s.path, config={}), "give a rocketpy.StoreConfig"),  # type: ignore[arg-type]
    (lambda _: rocketpy.StoreConfig(index_slots="9"), "index_slots cannot be '9'"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.fixture
def orders(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", queues=2)
    return store


@pytest.mark.parametrize(("call", "words"), BAD, ids=[words for _, words in BAD])
def test_a_bad_argument_is_refused_with_what_to_give(
    orders: rocketpy.Store, call: Callable[[Any], object], words: str
) -> None:
    topics, groups = orders.topics(), orders.groups()
    with pytest.raises(RocketPyError) as raised:
        call(orders)
    assert words in str(raised.value)
    assert (orders.topics(), orders.groups()) == (topics, groups)
    assert orders.scan().read_all().num_rows == 0


def test_every_parameter_of_a_store_is_of_a_kind_that_is_known() -> None:
    checked_elsewhere = {
        "bool", "bytes | str", "MessageData", "Time", "Where", "Receipt | str",
        "Receipt | str | tuple[str, int, int]", 'Literal["zlib", "lz4", "zstd"]',
        'Literal["lower", "upper"]',
    }  # fmt: skip
    for name, method in inspect.getmembers(rocketpy.Store, inspect.isfunction):
        if not name.startswith("_"):
            for parameter in list(inspect.signature(method).parameters.values())[1:]:
                kind = str(parameter.annotation).removesuffix(" | None").replace("'", '"')
                assert kind in {*KINDS, *checked_elsewhere}, f"{name}({parameter})"


def test_numbers_of_numpy_are_whole_numbers(orders: rocketpy.Store) -> None:
    import numpy as np

    receipt = orders.send("orders", "x", queue_id=np.int64(1))  # type: ignore[arg-type]
    assert receipt.queue_id == 1


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_file_where_a_store_should_be_is_told(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("no store")
    with pytest.raises(StoreAccessError, match="a store is a folder, and there is a file: give an"):
        rocketpy.open(tmp_path / folder)


def test_a_file_is_no_store_to_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no store")
    with pytest.raises(StoreNotFoundError):
        rocketpy.open(tmp_path / "file", read_only=True)


@contextmanager
def somebody_else() -> Iterator[None]:
    """Have only the rights of other users for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that all may enter, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def allow_reading_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_store_that_one_may_not_change_is_told_and_can_be_read(public_folder: Path) -> None:
    path = public_folder / "store"
    with rocketpy.open(path) as store:
        store.create_topic("orders", queues=1)
        store.send("orders", "1")
    allow_reading_only(public_folder)
    with somebody_else():
        with pytest.raises(StoreAccessError, match=r"Permission denied; .*with read_only=True"):
            rocketpy.open(path)
        with rocketpy.open(path, read_only=True) as store:
            assert store.read("orders").read_all().num_rows == 1


def test_a_folder_in_which_one_may_make_nothing_is_told(public_folder: Path) -> None:
    allow_reading_only(public_folder)
    with somebody_else(), pytest.raises(StoreAccessError, match="Permission denied"):
        rocketpy.open(public_folder / "store")


def test_files_that_go_away_while_they_are_read_are_told(
    orders: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.send("orders", "1")
    reader = orders.scan()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "commitlog/0")

    monkeypatch.setattr(Disk, "open", fail)
    orders._store.parts.log.files.close()
    with pytest.raises(StoreAccessError, match=r"commitlog/0: Input/output error; the disk fails"):
        reader.read_all()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "mount it for writing; to look at it without changing it, open it with rea"),
        (errno.EACCES, "open it with read_only=True"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENAMETOOLONG, "give a shorter path"),
        (errno.ENXIO, "look whether the store shop is where it should be"),
    ],
)
def test_what_the_system_says_comes_with_what_to_do(number: int, words: str) -> None:
    error = as_store_error(OSError(number, os.strerror(number), "shop/lock"), Path("shop"))
    assert str(error).startswith(f"shop/lock: {os.strerror(number)}; ")
    assert words in str(error)


def test_a_full_disk_stays_a_full_disk() -> None:
    error = as_store_error(OSError(errno.ENOSPC, "full"), Path("shop"))
    assert isinstance(error, DiskFullError)


def test_rows_are_taken_as_dicts(orders: rocketpy.Store) -> None:
    rows: list[dict[str, object]] = [
        {"body": "1", "tags": "new", "keys": ["a", "b"], "properties": {"region": "eu"}},
        {"body": b"2", "queue_id": 1},
    ]
    assert orders.append("orders", rows).count == 2
    stored = orders.read("orders", columns="body, tags, keys, queue_id").read_all().to_pylist()
    by_body = {row.pop("body"): row for row in stored}
    assert by_body[b"1"] | {"queue_id": 0} == {"tags": "new", "keys": "a b", "queue_id": 0}
    assert by_body[b"2"] == {"tags": None, "keys": None, "queue_id": 1}
    (found,) = orders.query("orders", key="b", columns="properties")["properties"].to_pylist()
    assert ("region", "eu") in found


def test_rows_that_do_not_fit_together_are_refused(orders: rocketpy.Store) -> None:
    with pytest.raises(ColumnError, match="column 'queue_id': its values do not fit together"):
        orders.append("orders", [{"body": "1", "queue_id": 1}, {"body": "2", "queue_id": "x"}])


def test_what_arrow_knows_how_to_read_is_taken(orders: rocketpy.Store) -> None:
    table = pa.table({"body": ["1", "2"]})
    for data in (table, table.to_batches()[0], table.to_reader()):
        assert orders.append("orders", data).count == 2
