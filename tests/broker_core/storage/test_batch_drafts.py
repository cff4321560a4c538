"""Batches that are drafted as one: the same bytes as their messages one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.batch_draft import BatchDraft, BatchHead
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import drafted_batches, drafted_text
from rocketpy.broker_core.java_hash import string_hash
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.protocol.bodies.batch_columns import BatchColumns, batch_columns
from rocketpy.broker_core.protocol.bodies.batches import join_batch
from rocketpy.broker_core.storage.appends import Draft
from rocketpy.broker_core.storage.store import MessageStore


def columns(messages: Sequence[tuple[int, bytes, bytes]]) -> BatchColumns:
    return batch_columns([join_batch(messages)])


def drafted_batch(
    topic: str, queue_id: int, batch: BatchColumns, config: StoreConfig, **shared: Any
) -> list[BatchDraft]:
    (drafts,) = drafted_batches([BatchHead(topic, queue_id, **shared)], batch, config)
    return drafts


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("born", ["10.0.0.1", "fe80::1"])
def test_a_batch_is_stored_in_the_same_bytes_as_its_messages_one_by_one(
    tmp_path: Path, checksum: bool, born: str
) -> None:
    config = StoreConfig(record_checksum=checksum, commit_log_file_size=1 << 20)
    shared: dict[str, Any] = {
        "born_ms": 7,
        "sys_flag": 0x100,
        "born_host": Host(born, 5).packed(),
        "store_host": config.store_host.packed(),
        "reconsume_times": 2,
    }
    messages = [(0, b"a", b"TAGS\x01t\x02"), (-3, b"", b""), (9, b"c" * 300, b"K\x01v")]
    closed = [
        (flag, body, text.rstrip(b"\x02") + b"\x02" * bool(text)) for flag, body, text in messages
    ]
    singles: list[Draft] = [
        drafted_text(
            "t", 1, body, text, config, tag="t" if b"TAGS" in text else None, flag=flag, **shared
        )
        for flag, body, text in closed
    ]
    logs = []
    together: list[Draft] = [*drafted_batch("t", 1, columns(messages), config, **shared)]
    for name, drafts in (("one", together), ("each", singles)):
        store = MessageStore(tmp_path / name, config, clock=ManualClock())
        first = store.append_many(drafts)[0]
        store.append_many(drafted_batch("t", 1, columns(messages[:1]), config, **shared))
        assert first.queue_offset == 0
        assert store.queue("t", 1).range() == (0, 4)
        queue = bytes(store.queue("t", 1).queue.units(0, 4).tobytes())
        logs.append((bytes(store.log_bytes(0, 1 << 20)), queue))
        store.close()
    assert logs[0] == logs[1]


SEVERAL = [
    [(0, b"a" * 9, b"TAGS\x01t\x02"), (1, b"b" * 9, b"TAGS\x01t\x02")],  # all of one size
    [(0, b"c", b""), (-3, b"", b"K\x01v"), (9, b"d" * 300, b"TAGS\x01u\x02")],
    [(0, b"e", b"K\x01v\x02")],
]


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("apart", [True, False], ids=["stored apart", "stored together"])
def test_batches_drafted_together_have_the_bytes_that_they_have_alone(
    tmp_path: Path, checksum: bool, apart: bool
) -> None:
    config = StoreConfig(record_checksum=checksum, commit_log_file_size=1 << 20)
    host, topics = config.store_host.packed(), ("t", "longer", "t")
    heads = [
        BatchHead(topic, queue_id, host, host, born_ms=queue_id + 5, sys_flag=queue_id)
        for queue_id, topic in enumerate(topics)
    ]
    heads[2] = heads[2]._replace(queue_id=0)  # two of them go to one queue
    bodies = [join_batch(messages) for messages in SEVERAL]
    together = drafted_batches(heads, batch_columns(bodies), config)
    alone = [
        drafts
        for head, body in zip(heads, bodies, strict=True)
        for drafts in drafted_batches([head], batch_columns([body]), config)
    ]
    found = []
    for name, batches in (("together", together), ("alone", alone)):
        store = MessageStore(tmp_path / name, config, clock=ManualClock())
        for topic in set(topics):
            store.create_topic(topic, 2)
        shared: dict[str, Any] = {"born_ms": 7, "sys_flag": 0, "born_host": host}
        single = drafted_text(
            "t", 0, b"between", b"", config, tag=None, flag=0, store_host=host, **shared
        )
        order: list[list[Draft]] = [[*batches[0]], [*batches[1]], [single], [*batches[2]]]
        for drafts in order if apart else [[draft for each in order for draft in each]]:
            store.append_many(drafts)
        queues = [store.queue("t", 0), store.queue("longer", 1)]
        assert [queue.range() for queue in queues] == [(0, 4), (0, 3)]
        units = [queue.queue.units(*queue.range()).tobytes() for queue in queues]
        found.append((bytes(store.log_bytes(0, 1 << 20)), units))
        assert list(store.verify()) == []
        store.close()
    assert found[0] == found[1]


@pytest.mark.parametrize(("count", "size"), [(20, 1500), (200, 0)])
def test_a_batch_that_a_file_cannot_hold_goes_to_several(
    tmp_path: Path, count: int, size: int
) -> None:
    config = StoreConfig(commit_log_file_size=8192, max_message_size=4096)
    messages = [(0, b"x" * size, b"") for _ in range(count)]
    shared: dict[str, Any] = {"born_ms": 7, "sys_flag": 0, "born_host": config.store_host.packed()}
    drafts = drafted_batch(
        "t", 0, columns(messages), config, store_host=config.store_host.packed(), **shared
    )
    assert len(drafts) > 1
    store = MessageStore(tmp_path / "s", config, clock=ManualClock())
    store.create_topic("t", 1)
    store.append_many(drafts)
    assert store.queue("t", 0).range() == (0, count)
    assert list(store.verify()) == []
    store.close()


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (b"TAGS\x01a", "a"),
        (b"K\x01v\x02TAGS\x01a\x02", "a"),
        (b"TAGS\x01a\x02TAGS\x01b\x02K\x01v", "b"),
        (b"MYTAGS\x01a\x02", None),
        (b"TAGS\x01a\x02MYTAGS\x01b\x02", "a"),
        (b"TAGS\x01\xc3\xa9", "\u00e9"),
        (b"TAGS\x01\x02", None),
        (b"", None),
    ],
)
def test_the_tag_of_a_batched_message_is_that_of_its_properties(
    text: bytes, tag: str | None
) -> None:
    config = StoreConfig()
    host = config.store_host.packed()
    shared: dict[str, Any] = {"born_ms": 7, "sys_flag": 0, "born_host": host, "store_host": host}
    batch = columns([(0, b"a", b""), (0, b"b", text)])
    (draft,) = drafted_batch("t", 0, batch, config, **shared)
    assert draft.tag_codes.tolist() == [0, string_hash(tag) if tag else 0]


@pytest.mark.parametrize(
    "texts",
    [
        (b"U\x011\x02TAGS\x01a\x02", b"U\x012\x02TAGS\x01a\x02"),
        (b"U\x011\x02TAGS\x01a\x02", b"U\x012\x02TAGS\x01b\x02"),
        (b"U\x011\x02TAGS\x01a\x02K\x01v", b"U\x012\x02TAGS\x01a\x02K\x01v"),
        (b"U\x011\x02TAGS\x01a\x02K\x01v", b"U\x012\x02TAGS\x01b\x02K\x01v"),
        (b"U\x011\x02TAGS\x01a\x02", b"TAGS\x01b\x02U\x012\x02TAGS\x01a\x02"),
        (b"U\x011\x02TAGS\x01a\x02", b"U\x012\x02TAGS\x01a\x02TAGS\x01b\x02"),
        (b"U\x011\x02TAGS\x01a\x02", b"U\x012\x02MYTAGS\x01a\x02"),
        (b"MYTAGS\x01a\x02", b"TAGS\x01b\x02MYTAGS\x01a\x02"),
        (b"K\x01v\x02", b"TAGS\x01b\x02K\x01v\x02"),
        (b"\x02K\x01v\x02", b"TAGS\x01b\x02K\x01v\x02"),
    ],
)
def test_messages_of_a_batch_have_the_tags_that_they_have_alone(texts: tuple[bytes, bytes]) -> None:
    config = StoreConfig()
    host = config.store_host.packed()
    shared: dict[str, Any] = {"born_ms": 7, "sys_flag": 0, "born_host": host, "store_host": host}

    def codes(*texts: bytes) -> list[int]:
        batch = columns([(0, b"a", text) for text in texts])
        (draft,) = drafted_batch("t", 0, batch, config, **shared)
        return [int(code) for code in draft.tag_codes]

    assert codes(*texts) == [code for text in texts for code in codes(text)]


def test_a_batched_message_beyond_a_limit_is_refused() -> None:
    config = StoreConfig(max_message_size=100)
    host = config.store_host.packed()
    shared: dict[str, Any] = {"born_ms": 7, "sys_flag": 0, "born_host": host, "store_host": host}
    with pytest.raises(MessageRefusedError, match="101 bytes, the limit is 100"):
        drafted_batch("t", 0, columns([(0, b"a", b""), (0, b"b" * 101, b"")]), config, **shared)
    with pytest.raises(MessageRefusedError, match="a record holds 32767"):
        drafted_batch("t", 0, columns([(0, b"a", b"k\x01" + b"v" * 32765)]), config, **shared)
