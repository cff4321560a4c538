"""Sending back many messages at once is the same as sending back each of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies import PROPERTIES, TEXTS, V4, V6, with_host_bits
from tests.putting import tag_code_of

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.codec.record import decode_record, encode_record
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.message import Host, Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.metadata import GroupConfig
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import CAUSE
from rocketpy.broker_core.retry.columns import sent_back_batches
from rocketpy.broker_core.retry.rules import RetryRule, sent_back

SPECIAL = st.dictionaries(
    st.sampled_from(
        [
            *("RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "WAIT", "DELAY", "REAL_TOPIC", "REAL_QID"),
            *(CAUSE, "TIMER_DELIVER_MS", "TIMER_OUT_MS", "TIMER_DELAY_SEC"),
            *("TIMER_DELAY_MS", "PAD"),
        ]
    ),
    st.one_of(TEXTS, st.just("p" * 120)),
    max_size=4,
)
HOSTS_V4 = st.builds(Host, V4, st.integers(0, 65_535))
HOSTS_V6 = st.builds(Host, V6, st.integers(0, 65_535))
MESSAGES = st.builds(
    Message,
    topic=st.sampled_from(["t", "orders", "%RETRY%g", "%DLQ%other"]),
    stored_body=st.binary(max_size=30),
    properties=st.builds(lambda one, other: {**one, **other}, PROPERTIES, SPECIAL),
    queue_id=st.integers(0, 7),
    flag=st.integers(-(1 << 31), (1 << 31) - 1),
    sys_flag=st.sampled_from([0, int(SysFlag.COMPRESSED | SysFlag.ZLIB), 0x8]),
    born_timestamp_ms=st.integers(0, 1 << 50),
    born_host=st.one_of(HOSTS_V4, HOSTS_V6),
    store_host=st.one_of(HOSTS_V4, st.just(Host("::1", 10911))),
    reconsume_times=st.integers(0, 20),
    has_checksum=st.booleans(),
)
RULES = st.builds(
    RetryRule,
    group=st.builds(
        GroupConfig, st.just("g"), retry_max_times=st.integers(0, 17), retry_queues=st.just(4)
    ),
    config=st.builds(
        StoreConfig,
        record_checksum=st.booleans(),
        max_properties_length=st.sampled_from([900, 32_767]),
        delay_levels=st.sampled_from(["1s 5s 10s 30s", "1s 5s 1m 2h 1d 1d 1d 1d 1d 1d"]),
    ),
    delay_level=st.integers(-1, 12),
)
CAUSES = st.one_of(st.none(), TEXTS, st.sampled_from(["a\x01b\x02", "é" * 1200, "c" * 500]))


@given(st.lists(st.tuples(MESSAGES, CAUSES, st.integers(0, 3)), min_size=1, max_size=6), RULES)
def test_columns_send_back_what_the_rule_sends_back(
    rows: list[tuple[Message, str | None, int]], rule: RetryRule
) -> None:
    placed, data = list[Message](), b""
    for message, _, _ in rows:
        flags = with_host_bits(message.sys_flag, message.born_host, message.store_host)
        placed.append(replace(message, physical_offset=PhysicalOffset(len(data)), sys_flag=flags))
        data += encode_record(placed[-1])
    block = RecordBlock(
        np.frombuffer(data, np.uint8), np.array([m.physical_offset for m in placed])
    )
    expected = [
        sent_back(message, rule, queue_id=queue_id, cause=cause)
        for message, (_, cause, queue_id) in zip(placed, rows, strict=True)
    ]

    found, codes = list[Message](), list[int]()
    for batch, _ in sent_back_batches(
        block,
        rule,
        queue_ids=np.array([queue_id for _, _, queue_id in rows], np.int32),
        causes=pa.array([cause for _, cause, _ in rows], pa.string()),
    ):
        zeros = np.zeros(len(batch.run), np.int64)
        batch.run.place(zeros, zeros, 1_000)
        found += [decode_record(bytes(batch.run.data), int(start)) for start in batch.run.starts]
        codes += batch.codes_at(1_000).tolist()

    waiting = [copy for copy in expected if copy.topic == SCHEDULE_TOPIC]
    dead = [copy for copy in expected if copy.topic != SCHEDULE_TOPIC]
    wanted = [
        replace(copy, store_timestamp_ms=1_000, queue_offset=QueueOffset(0),
                sys_flag=with_host_bits(copy.sys_flag, copy.born_host, copy.store_host))
        for copy in waiting + dead
    ]  # fmt: skip
    assert found == wanted
    assert codes == [tag_code_of(copy, 1_000, rule.config) for copy in waiting + dead]
