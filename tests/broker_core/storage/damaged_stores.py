"""Small stores with known messages, and ways to damage them."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.property_names import LOST
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.verify import verify

FILE_SIZE = 16 << 10
_templates = TemporaryDirectory(prefix="rocketpy-stores-")  # each made once, then copied
Rows = dict[tuple[str, int, int], dict[str, Any]]  # by topic, queue, offset


def settings(**changes: Any) -> rocketpy.StoreConfig:
    """Return file sizes so small that a few hundred messages fill many files."""
    sizes: dict[str, Any] = {
        "commit_log_file_size": FILE_SIZE,
        "max_message_size": 8 << 10,
        "consume_queue_file_entries": 16,
        "index_slots": 50,
        "index_entries": 200,
    }
    return rocketpy.StoreConfig(**{**sizes, **changes})


def make_store(path: Path, count: int = 300, **changes: Any) -> Path:
    """Make a store of two topics whose messages lie mixed in the log."""
    return Path(shutil.copytree(_template(count, tuple(changes.items())), path))


@cache
def _template(count: int, changes: tuple[tuple[str, Any], ...]) -> Path:
    path = Path(_templates.name) / str(len(list(Path(_templates.name).iterdir())))
    with rocketpy.open(path, config=settings(**dict(changes))) as store:
        store.create_topic("orders", queues=2)
        store.create_topic("logs", queues=1)
        for number in range(count):
            topic, queue_id = (("orders", 0), ("logs", 0), ("orders", 1))[number % 3]
            store.send(
                topic,
                f"message {number} " + "x" * (number % 40),
                tags=f"t{number % 5}",
                keys=[f"k{number}", f"every{number % 7}"],
                queue_id=queue_id,
            )
        store.commit("billing", "orders", {0: count // 30, 1: count // 60})
    return path


def rows(path: Path) -> Rows:
    """Return all messages that the queues lead to, but for placeholders of lost ones."""
    found: Rows = {}
    with rocketpy.open(path, read_only=True) as store:
        for topic in store.topics():
            for row in store.read(topic, columns="*").read_all().to_pylist():
                if LOST not in dict(row["properties"]):
                    found[topic, row["queue_id"], row["queue_offset"]] = row
    return found


def problems(path: Path) -> list[str]:
    """Return what verify says."""
    config = rocketpy.StoreConfig()
    store = MessageStore(path, config, clock=SystemClock(), read_only=True)
    return [str(problem) for problem in verify(store.parts)]


def records(path: Path) -> list[tuple[int, int]]:
    """Return place and size of every record, by the sizes that records tell."""
    found = []
    for file in sorted((path / "commitlog").iterdir()):
        data = np.frombuffer(file.read_bytes(), np.uint8)
        starts, _ = record_starts(data, 0, data.size, 1 << 30)
        if starts:
            block = RecordBlock(data, np.array(starts, np.int64))
            places = block.starts + int(file.name)
            found += list(zip(places.tolist(), block.sizes.tolist(), strict=True))
    return found


def overwrite(path: Path, place: int, data: bytes) -> None:
    """Write bytes to a physical offset of the log."""
    start = place - place % FILE_SIZE
    with (path / "commitlog" / f"{start:020d}").open("r+b") as file:
        file.seek(place - start)
        file.write(data)


def contents(path: Path, *, ignore: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Return all files of a folder by name."""
    return {
        name: file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and not (name := str(file.relative_to(path))).startswith(ignore)
    }
