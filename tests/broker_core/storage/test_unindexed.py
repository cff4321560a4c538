"""Batches that are indexed by what their writer knows of them: the entries are those of the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.batch_draft import BatchHead
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.intake.gate import drafted_batches
from rocketpy.broker_core.protocol.bodies.batch_columns import batch_columns
from rocketpy.broker_core.protocol.bodies.batches import join_batch
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.writer import Writer

Sent = tuple[str, int, list[bytes]]  # topic, sysFlag, property strings

ROLLBACK = int(SysFlag.TRANSACTION_ROLLBACK)
UNIQUE = b"UNIQ_KEY\x01u%d\x02"
TURNS: list[list[Sent]] = [
    [("t", 0, [UNIQUE % 1 + b"KEYS\x01k1 all\x02", UNIQUE % 2]), ("other", 0, [UNIQUE % 3])],
    [("t", 0, [b"", b"KEYS\x01all\x02TAGS\x01x", UNIQUE % 5 + b"TAGS\x01x\x02"])],
    [("t", 0, [UNIQUE % 6]), ("t", ROLLBACK, [UNIQUE % 7]), ("t", 0, [UNIQUE % 8] * 2)],
]


@pytest.fixture
def store(path: Path, small: rocketpy.StoreConfig) -> Iterator[MessageStore]:
    with_batches = opened(path, small)
    yield with_batches
    assert list(with_batches.verify()) == []
    with_batches.close()


def opened(path: Path, small: rocketpy.StoreConfig) -> MessageStore:
    """Return a store in which nothing is indexed in the background."""
    config = replace(small, flush_interval_ms=1_000_000_000)
    store = MessageStore(path, config, clock=ManualClock())
    for topic in ("t", "other"):
        store.create_topic(topic, 1)
    return store


def put(store: MessageStore, turn: list[Sent]) -> None:
    host = store.config.store_host.packed()
    heads = [BatchHead(topic, 0, host, host, 7, sys_flag) for topic, sys_flag, _ in turn]
    bodies = [join_batch([(0, b"body", text) for text in texts]) for _, _, texts in turn]
    batches = drafted_batches(heads, batch_columns(bodies), store.config)
    store.append_many([draft for drafts in batches for draft in drafts])


def entries(store: MessageStore) -> list[tuple[int, int]]:
    """Return hash and place of every entry of the index."""
    index = store.parts.index
    files = [index.file(name) for name in index.names()]
    views = [file.read_entries(1, file.header().count) for file in files]
    return [(int(e["key_hash"]), int(e["physical_offset"])) for view in views for e in view]


def test_what_is_known_of_batches_gives_the_index_that_the_log_gives(
    tmp_path: Path, small: rocketpy.StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for is_known in (True, False):
        store = opened(tmp_path / str(is_known), small)
        for turn in TURNS:
            put(store, turn)
        with monkeypatch.context() as patch:
            if is_known:
                patch.setattr(type(store.parts.log), "walk", lambda *_: pytest.fail("it was read"))
            else:
                store._writer._unindexed_batches.forget()
            store._writer.catch_up()
        folder = store.parts.index.folder
        found.append([file.read_bytes() for file in sorted(folder.iterdir())])
        assert len(entries(store)) == 12
        assert list(store.verify()) == []
        store.close()
    assert found[0] == found[1]


def test_batches_after_a_catch_up_are_known_again(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, TURNS[0])
    store._writer.catch_up()
    before = entries(store)
    put(store, TURNS[0])
    with monkeypatch.context() as patch:
        patch.setattr(type(store.parts.log), "walk", lambda *_: pytest.fail("it was read"))
        store._writer.catch_up()
    assert [each[0] for each in entries(store)] == [each[0] for each in before] * 2


def test_messages_between_batches_are_read_from_the_log(
    store: MessageStore, path: Path, small: rocketpy.StoreConfig
) -> None:
    """Another writer appends while this one has batches that are not indexed."""
    put(store, TURNS[1])
    other = MessageStore(path, small, clock=ManualClock())
    put(other, TURNS[0])
    put(store, TURNS[1])
    other._writer.catch_up()
    assert len(entries(store)) == 4 + 5 + 4
    put(other, TURNS[1])
    put(store, TURNS[1])
    store._writer.catch_up()
    assert len(entries(store)) == len(set(entries(store))) == 4 + 5 + 4 + 4 + 4
    other.close()


def test_more_messages_of_batches_wait_for_the_index(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writer, "most_unindexed", 8)
    four: list[Sent] = [("t", 0, [UNIQUE % 1] * 4)]
    for _ in range(5):
        put(store, four)
    assert entries(store) == []
    put(store, four)
    assert len(entries(store)) == 20


def test_a_stretch_too_long_to_keep_is_read_from_the_log(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocketpy.broker_core.storage.unindexed._MOST_BYTES", 500)
    for turn in TURNS:
        put(store, turn)
    store._writer.catch_up()
    assert len(entries(store)) == 12
