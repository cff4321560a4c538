"""The vectorised encoder writes the bytes of the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies import BODIES, INT32, INT64, NAMES, TEXTS, V4

from rocketpy.broker_core.codec.encoder import MessageColumns, encode
from rocketpy.broker_core.codec.property_encoder import join_property_columns
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.message import (
    Host,
    Message,
    PhysicalOffset,
    QueueOffset,
    join_properties,
)

HOSTS = st.builds(Host, V4, st.integers(0, 65535))
ROWS = st.tuples(
    BODIES,
    st.dictionaries(NAMES, TEXTS, max_size=4),
    st.integers(0, 1000),  # queue id
    INT32,  # flag
    INT64,  # born timestamp
    st.integers(0, 1 << 60),  # queue offset
    st.integers(0, 1 << 60),  # physical offset
)


@given(
    topic=st.text("abc%_-", min_size=1, max_size=127),
    rows=st.lists(ROWS, min_size=1, max_size=8),
    born=HOSTS,
    store=HOSTS,
    stored_ms=INT64,
    checksum=st.booleans(),
)
def test_a_run_of_records_is_the_records_of_the_plain_codec(
    topic: str, rows: list[tuple[Any, ...]], born: Host, store: Host, stored_ms: int, checksum: bool
) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    bodies, properties, queue_ids, flags, born_ms, queue_offsets, physical_offsets = columns
    run = encode(
        MessageColumns(
            topic=topic.encode(),
            bodies=pa.array(bodies, pa.binary()),
            properties=pa.array([join_properties(one) for one in properties], pa.binary()),
            queue_ids=np.array(queue_ids, np.int32),
            flags=np.array(flags, np.int32),
            born_timestamps=np.array(born_ms, np.int64),
            born_host=born,
            store_host=store,
        ),
        checksum=checksum,
    )
    offsets = np.array(queue_offsets, np.int64), np.array(physical_offsets, np.int64)
    run.place(*offsets, stored_ms)
    expected = [
        encode_record(
            Message(
                topic=topic,
                stored_body=body,
                properties=one,
                queue_id=queue_id,
                flag=flag,
                born_timestamp_ms=born_at,
                queue_offset=QueueOffset(queue_offset),
                physical_offset=PhysicalOffset(physical_offset),
                store_timestamp_ms=stored_ms,
                born_host=born,
                store_host=store,
                has_checksum=checksum,
            )
        )
        for body, one, queue_id, flag, born_at, queue_offset, physical_offset in rows
    ]
    assert bytes(run.data[: int(run.sizes.sum())]) == b"".join(expected)
    assert run.sizes.tolist() == [len(record) for record in expected]
    assert run.starts.tolist() == [
        sum(map(len, expected[:number])) for number in range(len(expected))
    ]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), TEXTS),
            st.one_of(st.none(), TEXTS),
            st.one_of(st.none(), st.dictionaries(NAMES, TEXTS, max_size=4)),
        ),
        max_size=8,
    ),
    st.integers(0, 3),
)
def test_property_strings_from_columns_are_those_of_the_plain_codec(
    rows: list[tuple[str | None, str | None, dict[str, str] | None]], skipped: int
) -> None:
    tags, keys = [row[0] for row in rows], [row[1] for row in rows]
    maps = [row[2] for row in rows]
    texts = pa.array(tags, pa.string()), pa.array(keys, pa.string())
    properties = pa.array(
        [None if one is None else list(one.items()) for one in maps],
        pa.map_(pa.string(), pa.string()),
    )
    # A slice must give its own rows: Arrow hands out tables in slices.
    named = {"FIRST": texts[0].slice(skipped), "SECOND": texts[1].slice(skipped)}
    kept = rows[skipped:]
    joined = join_property_columns(named, properties.slice(skipped), len(kept))
    expected = []
    for tag, key, one in kept:
        own = b"".join(
            join_properties({name: value})
            for name, value in (("FIRST", tag), ("SECOND", key))
            if value
        )
        expected.append(own + join_properties(one or {}))
    assert joined.to_pylist() == expected
