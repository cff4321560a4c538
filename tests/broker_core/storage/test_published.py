"""Readers see no message of an append that may still be taken back, and all that others wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import MessageNotFoundError
from rocketpy.broker_core.message import Host, offset_id
from rocketpy.broker_core.storage import writer
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.index import MessageIndex
from rocketpy.broker_core.storage.layout import TAIL_FILE
from rocketpy.broker_core.storage.queue_keeper import QueueKeeper
from rocketpy.broker_core.storage.tail import TailFile

TAKEN_BACK = pa.table({"body": ["taken back"] * 3, "keys": ["k"] * 3, "queue_id": [0, 0, 1]})
APPENDS: dict[str, Callable[[rocketpy.Store], object]] = {
    "one": lambda store: store.send("t", "taken back", keys=["k"], queue_id=0),
    "many": lambda store: store.append("t", TAKEN_BACK),
}


class Watcher:
    """A reader beside the writer: tells whatever can be seen of messages that are not published."""

    def __init__(self, path: Path) -> None:
        self.store = rocketpy.open(path, read_only=True)
        self.end = self.store._store.log_end()
        self.looks = 0
        self.seen = set[str]()

    def look(self) -> None:
        self.looks += 1
        found = {
            "range": self.store.queues("t")[0] != (0, 1),
            "read": self.store.read("t").read_all().num_rows != 1,
            "scan": self.store.scan().read_all().num_rows != 1,
            "log end": self.store._store.log_end() != self.end,
            "query": self.store.query("t", key="k").num_rows != 1,
            "get": self._has_next(),
        }
        self.seen |= {way for way, is_seen in found.items() if is_seen}

    def _has_next(self) -> bool:
        try:
            self.store.get(offset_id(Host("127.0.0.1", 10911), self.end))
        except MessageNotFoundError:
            return False
        return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    config = rocketpy.StoreConfig(index_slots=100, index_entries=400, commit_log_file_size=4096)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=2)
        store.send("t", "before", keys=["k"], queue_id=0)
    return path


@pytest.mark.parametrize("append", APPENDS.values(), ids=APPENDS)
def test_readers_see_nothing_of_an_append_that_is_interrupted(
    path: Path, append: Callable[[rocketpy.Store], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(path)

    def interrupted(*_: Any) -> None:
        watcher.look()
        raise KeyboardInterrupt

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            watcher.look()
            return result

        return run

    with rocketpy.open(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(QueueKeeper, "after_writing", interrupted)
            # Each step of taking it back: entries, index, records, and their first bytes.
            patch.setattr(ConsumeQueue, "cut", watched(ConsumeQueue.cut))
            patch.setattr(MessageIndex, "cut", watched(MessageIndex.cut))
            patch.setattr(CommitLog, "cut", watched(CommitLog.cut))
            patch.setattr(TailFile, "write_settled", watched(TailFile.write_settled))
            with pytest.raises(KeyboardInterrupt):
                append(store)
        assert watcher.looks >= 5
        assert watcher.seen == set()
        assert store.send("t", "after", queue_id=0).queue_offset == 1
    assert watcher.store.read("t").read_all()["body"].to_pylist() == [b"before", b"after"]


@pytest.mark.parametrize("append", APPENDS.values(), ids=APPENDS)
def test_readers_see_nothing_of_an_append_whose_writer_died_until_it_is_finished(
    path: Path, append: Callable[[rocketpy.Store], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(path)

    def died(*_: Any) -> None:
        raise SystemExit

    with rocketpy.open(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(QueueKeeper, "after_writing", died)
            patch.setattr(writer.Writer, "_undo", lambda *_: None)
            with pytest.raises(SystemExit):
                append(store)
        watcher.look()
        assert watcher.seen == set()
        store.send("t", "after", queue_id=1)
    bodies = watcher.store.read("t").read_all()["body"].to_pylist()
    assert bodies.count(b"taken back") == (3 if append is APPENDS["many"] else 1)


def test_what_another_program_wrote_behind_an_append_that_died_counts(path: Path) -> None:
    """Such a program does not know of the tail: it is as the writer left it when it died."""
    watcher = Watcher(path)
    tail = path / TAIL_FILE
    with rocketpy.open(path) as store:
        store.send("t", "from elsewhere", queue_id=0)
        stale = TailFile(path, store._store.parts.disk, writable=True)
        state = stale.read()
        assert state is not None
        stale.announce(state.end, state.end + 10)
        left = tail.read_bytes()
        store.send("t", "from elsewhere", queue_id=0)
        store.send("t", "from elsewhere", queue_id=1)
    tail.write_bytes(left)
    assert watcher.store.queues("t")[0] == (0, 3)
    assert watcher.store.queues("t")[1] == (0, 1)
    assert watcher.store.scan().read_all().num_rows == 4


def test_what_another_program_wrote_after_an_append_was_taken_back_counts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(path)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with rocketpy.open(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(QueueKeeper, "after_writing", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.append("t", TAKEN_BACK)
        left = (path / TAIL_FILE).read_bytes()
        store.send("t", "from elsewhere", queue_id=0)
    (path / TAIL_FILE).write_bytes(left)
    assert watcher.store.queues("t")[0] == (0, 2)
    assert watcher.store.scan().read_all().num_rows == 2
