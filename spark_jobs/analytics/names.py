"""Names of hashes, and hashes of names.

Names are read from one message each, by tasks, through its physical offset: queues and index keep
only hashes. Each function returns a column function for one store; the name
is null where the record is damaged, or gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from rocketpy.broker_core.java_hash import index_key_hash, tag_hash
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.view_partitions import opened_views

ColumnFunction = Callable[..., Column]


def tag_names(path: str) -> ColumnFunction:
    """Return what gives the tag of the message at a physical offset."""

    def names(physical_offsets: pa.Array) -> pa.Array:
        found = _read(path, physical_offsets, "tags")
        return pa.array([found.get(at, {}).get("tags") for at in physical_offsets.to_pylist()])

    return _function(names, "string")


def topic_names(path: str) -> ColumnFunction:
    """Return what gives the topic of the message at a physical offset."""

    def names(physical_offsets: pa.Array) -> pa.Array:
        found = _read(path, physical_offsets, "topic")
        topics = [found.get(at, {}).get("topic") for at in physical_offsets.to_pylist()]
        return pa.array(topics, pa.string())

    return _function(names, "string")


def tag_entries(path: str) -> ColumnFunction:
    """Return what gives the hash that the index has of the tag of a message."""

    def hashes(physical_offsets: pa.Array) -> pa.Array:
        found = _read(path, physical_offsets, "topic", "tags")
        rows = [found.get(at, {}) for at in physical_offsets.to_pylist()]
        return pa.array(
            [
                index_key_hash(f"{row['topic']}#T#{row['tags']}") if row.get("tags") else None
                for row in rows
            ],
            pa.int32(),
        )

    return _function(hashes, "int")


def key_names(path: str) -> ColumnFunction:
    """Return what gives the key of a hash, from a message that has the key."""

    def names(hashes: pa.Array, physical_offsets: pa.Array) -> pa.Array:
        found = _read(path, physical_offsets, "topic", "keys", "uniq_key")
        pairs = zip(hashes.to_pylist(), physical_offsets.to_pylist(), strict=True)
        return pa.array([_key(found.get(at), key_hash) for key_hash, at in pairs])

    return _function(names, "string")


def hash_of_tag(tags: str) -> Column:
    """Return the hash that queues have of a tag; null of none."""

    def hashes(names: pa.Array) -> pa.Array:
        return pa.array([tag_hash(tag) if tag else None for tag in names.to_pylist()], pa.int32())

    return _function(hashes, "int")(tags)


def hash_of_key(topic: str, key: str) -> Column:
    """Return the hash that the index has of a key of a topic."""

    def hashes(topics: pa.Array, keys: pa.Array) -> pa.Array:
        pairs = zip(topics.to_pylist(), keys.to_pylist(), strict=True)
        return pa.array([index_key_hash(f"{of}#{word}") for of, word in pairs], pa.int32())

    return _function(hashes, "int")(topic, key)


def _key(row: dict[str, Any] | None, key_hash: int) -> str | None:
    if row is None:
        return None
    words = [*(row["keys"] or "").split(KEY_SEPARATOR), row["uniq_key"] or ""]
    meant = (
        word for word in words if word and index_key_hash(f"{row['topic']}#{word}") == key_hash
    )
    return next(meant, None)


def _read(path: str, physical_offsets: pa.Array, *columns: str) -> dict[int, dict[str, Any]]:
    """Return the records by their physical offsets; they are as few as the rows of an answer."""
    wanted = np.unique(physical_offsets.to_numpy(zero_copy_only=False)).astype(np.int64)
    with opened_views(ReadOptions(path=path)) as views:
        rows = views.at(wanted, ["commit_log_offset", *columns]).to_pylist()
    return {row["commit_log_offset"]: row for row in rows}


def _function(function: Callable[..., pa.Array], kind: str) -> ColumnFunction:
    made: ColumnFunction = arrow_udf(function, kind)  # type: ignore[call-overload]
    return made
