"""The rows of a table wait as each of them does when it is sent alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies import PROPERTIES, TEXTS
from tests.putting import tag_code_of

from rocketpy.broker_core.codec.record import decode_record
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay.scheduling import scheduled
from rocketpy.broker_core.delay.timing import timed
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.table import Intake
from rocketpy.broker_core.intake.waiting import NOTED
from rocketpy.broker_core.message import Message

QUEUES = 4
MAX_DELAY_S = 60
STORED_MS = 1 << 41  # when the rows reach the log: later than they were made
NOW_MS = st.integers(1 << 40, (1 << 40) + 2000)
MAX_DELAY_MS = MAX_DELAY_S * 1000
AHEAD_MS = st.one_of(
    st.sampled_from([-1, 0, 1, MAX_DELAY_MS - 1, MAX_DELAY_MS]),
    st.integers(-1500, 3500),  # around whole seconds
)
TOO_FAR_MS = st.one_of(st.just(MAX_DELAY_MS + 1), st.integers(MAX_DELAY_MS + 1, 1 << 42))
LEVELS = st.one_of(st.integers(1, 20), st.just((1 << 31) - 1))
NEGATIVE_LEVELS = st.integers(-(1 << 31), -1)
CONFIGS = st.builds(
    StoreConfig,
    record_checksum=st.booleans(),
    delay_levels=st.sampled_from(["1s", "1s 5s 10s 30s", "1s 5s 1m 2h 1d 1d 1d 1d 1d 1d"]),
    timer_max_delay_s=st.just(MAX_DELAY_S),
)


class Row(NamedTuple):
    """A message that is to be sent, by `number` in its body."""

    number: int
    queue_id: int
    properties: dict[str, str]
    level: int | None
    ahead_ms: int | None


def rows(
    levels: st.SearchStrategy[int], ahead_ms: st.SearchStrategy[int]
) -> st.SearchStrategy[Row]:
    """Return rows with a level, a time ahead, or neither, and any notes of an earlier delay."""
    delays = st.one_of(
        st.tuples(st.sampled_from([None, 0]), st.none()),
        st.tuples(levels, st.none()),
        st.tuples(st.sampled_from([None, 0]), ahead_ms),
    )
    earlier = st.dictionaries(st.sampled_from(NOTED), TEXTS, max_size=3)
    # A table leaves out what is empty, where a name has a meaning to the store.
    properties = st.builds(
        lambda one, other: {name: text for name, text in {**one, **other}.items() if text},
        *(PROPERTIES, earlier),
    )
    queue_ids = st.integers(0, QUEUES - 1)
    return st.builds(
        lambda queue_id, properties, delay: Row(0, queue_id, properties, *delay),
        *(queue_ids, properties, delays),
    )


def as_it_waits(row: Row, config: StoreConfig, now_ms: int) -> Message:
    """Return what is stored of one message, as send() has it."""
    message = Message(
        topic="orders",
        stored_body=b"%d" % row.number,
        properties=row.properties,
        queue_id=row.queue_id,
        born_timestamp_ms=now_ms,
        store_timestamp_ms=STORED_MS,
        store_host=config.store_host,
        has_checksum=config.record_checksum,
    )
    if row.ahead_ms is not None:
        return timed(message, now_ms + row.ahead_ms, config, now_ms=now_ms)
    return scheduled(message, row.level or 0, config)


def table(rows: list[Row], now_ms: int) -> pa.RecordBatch:
    times = [None if row.ahead_ms is None else now_ms + row.ahead_ms for row in rows]
    maps = [list(row.properties.items()) for row in rows]
    return pa.record_batch(
        {
            "body": [b"%d" % row.number for row in rows],
            "queue_id": pa.array([row.queue_id for row in rows], pa.int32()),
            "properties": pa.array(maps, pa.map_(pa.string(), pa.string())),
            "delay_level": pa.array([row.level for row in rows], pa.int32()),
            "deliver_at": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )


@given(st.lists(rows(LEVELS, AHEAD_MS), min_size=1, max_size=8), CONFIGS, NOW_MS)
def test_a_table_waits_as_each_of_its_rows_does(
    sent: list[Row], config: StoreConfig, now_ms: int
) -> None:
    numbered = [row._replace(number=number) for number, row in enumerate(sent)]
    found = dict[bytes, tuple[Message, int]]()
    intake = Intake(topic="orders", queues=QUEUES, config=config)
    for batch in intake.batches(table(numbered, now_ms), now_ms):
        zeros = np.zeros(len(batch.run), np.int64)
        batch.run.place(zeros, zeros, STORED_MS)
        starts, codes = batch.run.starts.tolist(), batch.codes_at(STORED_MS).tolist()
        for start, code in zip(starts, codes, strict=True):
            message = decode_record(bytes(batch.run.data), start)
            found[message.stored_body] = message, code
    expected = [as_it_waits(row, config, now_ms) for row in numbered]
    assert found == {
        one.stored_body: (one, tag_code_of(one, STORED_MS, config)) for one in expected
    }


@given(rows(NEGATIVE_LEVELS, TOO_FAR_MS), CONFIGS, NOW_MS)
def test_a_table_refuses_the_delays_that_a_message_is_refused_for(
    row: Row, config: StoreConfig, now_ms: int
) -> None:
    intake = Intake(topic="orders", queues=QUEUES, config=config)
    batches = intake.batches(table([row], now_ms), now_ms)
    if not row.level and row.ahead_ms is None:
        assert len(list(batches)) == 1
        return
    with pytest.raises(MessageRefusedError):
        as_it_waits(row, config, now_ms)
    with pytest.raises(MessageRefusedError):
        list(batches)
