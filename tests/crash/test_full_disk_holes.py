"""Holes of sparse files on a full disk: neither who reads nor who writes there is killed.

To look into a hole through a mapping takes a page of a file system in memory, and to write there
takes a block of any; without one the process gets SIGBUS, which no `except` helps against. So each
test has a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.small_disk import PAGE, Filler, mounted

import rocketpy

pytestmark = pytest.mark.crash

COMMAND = "from rocketpy.spark_jobs.cli import main; main()"
READ = """
import sys, rocketpy
with rocketpy.open(sys.argv[1], read_only=True) as store:
    found = store.query("orders", key="k1").num_rows, store.query("orders", key="k99").num_rows
    print(*found, store.read("orders").read_all().num_rows, len(list(store.verify())))
"""
SEND = """
import sys, rocketpy
from rocketpy.broker_core.errors import DiskFullError
try:
    with rocketpy.open(sys.argv[1]) as store:
        for number in range(50):
            store.send("orders", b"x", keys=f"k{number}", tags="even")
        store._store._writer.catch_up()
    print("room")
except DiskFullError:
    print("full")
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a store of ordinary sizes, as its files are sparse."""
    with mounted(tmp_path, 64 << 20) as disk:
        yield disk


@pytest.fixture
def store(disk: Path) -> Path:
    """A store with one file of each kind, most of which are holes."""
    with rocketpy.open(disk / "store", config=rocketpy.StoreConfig(consume_queue_ext=True)) as it:
        it.create_topic("orders", 2)
        for number in range(10):
            it.send("orders", b"x" * 100, keys=f"k{number}", tags="even")
    return disk / "store"


def make_sparse(path: Path) -> None:
    """Make holes of a file's zeros, as in the files that Apache's broker makes."""
    sparse = path.with_name("sparse")
    subprocess.run(["cp", "--sparse=always", str(path), str(sparse)], check=True)
    sparse.replace(path)


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["store verify", "store stat", "doctor"])
def test_a_store_on_a_full_disk_is_looked_at(store: Path, words: str) -> None:
    Filler(store.parent).leave(0)
    ran = run(COMMAND, *words.split(), str(store))
    assert ran.returncode == (1 if words == "doctor" else 0), ran.stdout + ran.stderr


def test_a_store_with_a_sparse_index_is_read_on_a_full_disk(store: Path) -> None:
    make_sparse(next((store / "index").iterdir()))
    Filler(store.parent).leave(0)
    assert run(READ, str(store)).stdout.split() == ["1", "0", "10", "0"]


def test_a_sparse_index_is_written_to_until_the_disk_is_full(store: Path) -> None:
    make_sparse(next((store / "index").iterdir()))
    filler, told = Filler(store.parent), []
    for pages in (40, 20, 10, 5, 0):
        filler.leave(pages * PAGE)
        ran = run(SEND, str(store))
        assert ran.returncode == 0, (pages, ran.returncode, ran.stderr)
        told.append(ran.stdout.strip())
        filler.free()
        assert run(SEND, str(store)).stdout.strip() == "room"
    with rocketpy.open(store, read_only=True) as reader:
        assert list(reader.verify()) == []
    assert "full" in told
