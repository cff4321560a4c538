"""The store against a model of lists and dicts: whatever is done to both, they tell the same."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.intake.destination import queue_of

COLUMNS = ["topic", "queue_id", "queue_offset", "tags", "keys", "body", "store_timestamp"]
TOPICS = st.sampled_from(["a", "b", "c-long-name", "%RETRY%g"])
TAGS = st.sampled_from([None, "x", "y", "Aa", "BB", "é"])  # Aa and BB have one hash
KEYS = st.lists(st.sampled_from(["k1", "k2", "ключ", "Aa", "BB"]), max_size=2, unique=True)
BODIES = st.one_of(st.binary(max_size=30), st.integers(0, 2500).map(bytes))
FLUSHES: st.SearchStrategy[Literal["sync", "async"]] = st.sampled_from(["sync", "async"])
CODECS: st.SearchStrategy[Literal["zlib", "lz4", "zstd"] | None] = st.sampled_from(
    [None, None, "zlib", "lz4", "zstd"]
)


@dataclass(frozen=True, slots=True)
class Stored:
    """What the model knows of a message."""

    topic: str
    queue_id: int
    queue_offset: int
    tags: str | None
    keys: tuple[str, ...]
    body: bytes
    stored_ms: int


@dataclass(slots=True)
class Model:
    """Queues as lists, offsets as a dict."""

    queues: dict[str, dict[int, list[Stored]]] = field(default_factory=dict)
    committed: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)

    def put(self, message: Stored) -> None:
        queue = self.queues[message.topic][message.queue_id]
        assert message.queue_offset == len(queue)
        queue.append(message)

    def of_topic(self, topic: str) -> list[Stored]:
        return [message for _, queue in sorted(self.queues[topic].items()) for message in queue]


class StoreAgainstModel(RuleBasedStateMachine):
    """One store, closed and opened again at will."""

    topics: Bundle[str] = Bundle("topics")

    @initialize(ext=st.booleans(), checksum=st.booleans(), flush=FLUSHES)
    def open_first(self, ext: bool, checksum: bool, flush: Literal["sync", "async"]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock, self.model = ManualClock(), Model()
        self.in_order: list[Stored] = []
        self.config = rocketpy.StoreConfig(
            commit_log_file_size=4096,
            max_message_size=3000,
            consume_queue_file_entries=4,
            consume_queue_ext=ext,
            consume_queue_ext_file_size=90,
            index_slots=3,
            index_entries=12,
            record_checksum=checksum,
            retention_hours=None,
        )
        self.store = self._open(flush)

    def _open(self, flush: Literal["sync", "async"]) -> rocketpy.Store:
        return rocketpy.open(
            self.folder / "store", config=self.config, clock=self.clock, flush=flush
        )

    @rule(target=topics, name=TOPICS, queues=st.integers(1, 3))
    def create_topic(self, name: str, queues: int) -> str:
        made = self.store.create_topic(name, queues=queues)
        known = self.model.queues.setdefault(name, {})
        for queue_id in range(queues):
            known.setdefault(queue_id, [])
        assert made.write_queues == len(known)
        return name

    @rule(by_ms=st.sampled_from([0, 1, 5, 1000, -500]))
    def turn_clock(self, by_ms: int) -> None:
        self.clock.advance(by_ms)

    @rule(topic=topics, body=BODIES, tag=TAGS, keys=KEYS, codec=CODECS, shard=TAGS)
    def send(
        self,
        topic: str,
        body: bytes,
        tag: str | None,
        keys: list[str],
        codec: Literal["zlib", "lz4", "zstd"] | None,
        shard: str | None,
    ) -> None:
        receipt = self.store.send(
            topic, body, tags=tag, keys=keys, compress=codec, sharding_key=shard
        )
        if shard is not None:
            assert receipt.queue_id == queue_of(shard, len(self.model.queues[topic]))
        place = receipt.queue_id, receipt.queue_offset
        self._put(Stored(topic, *place, tag, tuple(keys), body, receipt.stored_ms))

    @rule(topic=topics, rows=st.lists(st.tuples(BODIES, TAGS, KEYS), max_size=12))
    def append(self, topic: str, rows: list[tuple[bytes, str | None, list[str]]]) -> None:
        before = {q: len(messages) for q, messages in self.model.queues[topic].items()}
        table = pa.table(
            {
                "body": pa.array([row[0] for row in rows], pa.binary()),
                "tags": pa.array([row[1] for row in rows], pa.string()),
                "keys": pa.array([row[2] for row in rows], pa.list_(pa.string())),
                "queue_id": pa.array([n % len(before) for n in range(len(rows))], pa.int32()),
            }
        )
        result = self.store.append(topic, table)
        assert result.count == len(rows)
        for number, (body, tag, keys) in enumerate(rows):
            queue_id = number % len(before)
            offset = len(self.model.queues[topic][queue_id])
            stored_ms = self._stored_ms(topic, queue_id, offset)
            self._put(Stored(topic, queue_id, offset, tag, tuple(keys), body, stored_ms))
        ends = {q: len(messages) for q, messages in self.model.queues[topic].items()}
        assert result.queues == {q: (before[q], ends[q]) for q in ends if ends[q] > before[q]}

    def _stored_ms(self, topic: str, queue_id: int, offset: int) -> int:
        row = self.store.read(topic, queue_id=queue_id, start=offset, end=offset + 1).read_all()
        stored_ms: int = row["store_timestamp"].cast(pa.int64())[0].as_py()
        assert stored_ms >= self.clock.now_ms()
        return stored_ms

    def _put(self, message: Stored) -> None:
        self.model.put(message)
        if self.in_order:
            assert message.stored_ms >= self.in_order[-1].stored_ms
        self.in_order.append(message)

    @rule(flush=FLUSHES)
    def reopen(self, flush: Literal["sync", "async"]) -> None:
        self.store.close()
        self.store = self._open(flush)

    @rule()
    def flush(self) -> None:
        self.store.flush()

    @rule(topic=topics, group=st.sampled_from(["g1", "g2"]), data=st.data())
    def commit(self, topic: str, group: str, data: st.DataObject) -> None:
        offsets = {
            queue_id: data.draw(st.integers(0, len(queue)))
            for queue_id, queue in self.model.queues[topic].items()
            if data.draw(st.booleans())
        }
        self.store.commit(group, topic, offsets)
        self.model.committed.setdefault((group, topic), {}).update(offsets)

    @rule(topic=topics, data=st.data())
    def read_by_offsets(self, topic: str, data: st.DataObject) -> None:
        queue_id = data.draw(st.sampled_from(sorted(self.model.queues[topic])))
        queue = self.model.queues[topic][queue_id]
        start = data.draw(st.integers(0, len(queue)))
        end = data.draw(st.integers(start, len(queue) + 3))
        found = self.store.read(topic, columns=COLUMNS, queue_id=queue_id, start=start, end=end)
        assert stored(found.read_all()) == queue[start:end]

    @rule(topic=topics, data=st.data())
    def read_by_time(self, topic: str, data: st.DataObject) -> None:
        messages = self.model.of_topic(topic)
        around = sorted({m.stored_ms + by for m in messages for by in (-1, 0, 1)} | {0})
        times = st.one_of(st.none(), st.sampled_from(around))
        start, end = data.draw(times), data.draw(times)
        found = self.store.read(topic, columns=COLUMNS, start_time=start, end_time=end)
        assert stored(found.read_all()) == [
            message
            for message in messages
            if (start is None or message.stored_ms >= start)
            and (end is None or message.stored_ms < end)
        ]

    @rule(
        topic=topics, names=st.sets(st.sampled_from(["x", "y", "Aa", "BB", "é", "no"]), min_size=1)
    )
    def read_by_tags(self, topic: str, names: set[str]) -> None:
        found = self.store.read(topic, columns=COLUMNS, tags=" || ".join(sorted(names)))
        expected = [m for m in self.model.of_topic(topic) if m.tags in names]
        assert stored(found.read_all()) == expected

    @rule(topic=topics, key=st.sampled_from(["k1", "k2", "ключ", "Aa", "BB", "no"]))
    def query(self, topic: str, key: str) -> None:
        found = stored(self.store.query(topic, key=key, columns=COLUMNS))
        assert found == [m for m in self.in_order if m.topic == topic and key in m.keys]

    @rule()
    def scan(self) -> None:
        assert stored(self.store.scan(columns=COLUMNS).read_all()) == self.in_order

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def ranges_and_offsets_agree(self) -> None:
        for topic, queues in self.model.queues.items():
            expected = {queue_id: (0, len(queue)) for queue_id, queue in queues.items()}
            assert self.store.queues(topic) == expected
        for (group, topic), offsets in self.model.committed.items():
            assert self.store.committed(group, topic) == offsets

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            assert list(self.store.verify()) == []
            self.store.close()
            with rocketpy.open(self.folder / "store", read_only=True, config=self.config) as store:
                assert stored(store.scan(columns=COLUMNS).read_all()) == self.in_order
        finally:
            self.store.close()
            shutil.rmtree(self.folder)


def stored(table: pa.Table) -> list[Stored]:
    times = table["store_timestamp"].cast(pa.int64())
    rows: list[dict[str, Any]] = table.set_column(
        table.schema.get_field_index("store_timestamp"), "store_timestamp", times
    ).to_pylist()
    return [
        Stored(
            row["topic"],
            row["queue_id"],
            row["queue_offset"],
            row["tags"],
            tuple((row["keys"] or "").split()),
            row["body"],
            row["store_timestamp"],
        )
        for row in rows
    ]


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(
    max_examples=max(25, settings().max_examples // 5), stateful_step_count=30, deadline=None
)
