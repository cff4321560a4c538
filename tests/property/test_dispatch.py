"""What queues and index keep of a message: the same for one message and for a block of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies import NAMES, TEXTS, messages
from tests.putting import tag_code_of

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.codec.sys_flags import indexed, queued
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.java_hash import index_key_hash
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.dispatch import (
    dispatches,
)

CONFIG = StoreConfig()
TOPICS = st.sampled_from(["a", "b", "%RETRY%g", SCHEDULE_TOPIC])
LEVELS = st.sampled_from(["", "0", "1", "18", "19", "999", "x", "-1", "1 ", "²"])
KINDS = st.sampled_from([0, 0, 4, 8, 12])  # of transactions


@st.composite
def dispatched(draw: st.DrawFn) -> Message:
    message = draw(messages(topics=TOPICS))
    properties = dict(message.properties)
    properties.update(draw(st.dictionaries(NAMES, TEXTS, max_size=2)))
    if draw(st.booleans()):
        properties["DELAY"] = draw(LEVELS)
    return replace(
        message,
        properties=properties,
        queue_id=draw(st.integers(0, 3)),
        sys_flag=message.sys_flag & ~0xC | draw(KINDS),
        store_timestamp_ms=draw(st.integers(0, 1 << 50)),
    )


def index_hashes_of(message: Message) -> list[int]:
    """Return what one message is found by: its unique key, each key, its tag."""
    unique, keys, tag = (message.properties.get(name, "") for name in ("UNIQ_KEY", "KEYS", "TAGS"))
    words = [unique, *keys.split(" "), f"T#{tag}" if tag else ""]
    return [index_key_hash(f"{message.topic}#{word}") for word in words if word]


@given(st.lists(dispatched(), min_size=1, max_size=8), st.integers(0, 1 << 40))
def test_a_block_is_dispatched_as_its_messages_are(sent: list[Message], file_start: int) -> None:
    records = [encode_record(message) for message in sent]
    data = np.frombuffer(b"".join(records), np.uint8)
    starts, _ = record_starts(data, 0, data.size, len(sent))
    block = RecordBlock(data, np.array(starts, np.int64))
    left = {start + file_start: message for start, message in zip(starts, sent, strict=True)}
    for dispatch in dispatches(block, file_start, CONFIG):
        of_topic = [left.pop(offset) for offset in dispatch.physical_offsets.tolist()]
        assert {message.topic for message in of_topic} == {dispatch.topic}
        assert dispatch.tag_codes.tolist() == [
            tag_code_of(one, one.store_timestamp_ms, CONFIG) for one in of_topic
        ]
        assert dispatch.queue_ids.tolist() == [one.queue_id for one in of_topic]
        assert dispatch.queue_offsets.tolist() == [one.queue_offset for one in of_topic]
        assert dispatch.timestamps.tolist() == [one.store_timestamp_ms for one in of_topic]
        entries = zip(dispatch.index_rows.tolist(), dispatch.index_hashes.tolist(), strict=True)
        assert list(entries) == [
            (row, key_hash) for row, one in enumerate(of_topic) for key_hash in index_hashes_of(one)
        ]
    assert left == {}


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=20))
def test_only_open_and_undone_transactions_are_kept_out(sys_flags: list[int]) -> None:
    flags = np.array(sys_flags, np.int32)
    kinds = [flag & 0xC for flag in sys_flags]
    assert queued(flags).tolist() == [kind in (0, 8) for kind in kinds]
    assert indexed(flags).tolist() == [kind != 12 for kind in kinds]
