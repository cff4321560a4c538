"""Names of hashes: read from one message each, by tasks, through its place in the log.

Queues and index keep hashes alone. Each function returns a column function for one store; the name
is null where the record is damaged, or gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from rocketpy.broker_core.java_hash import index_key_hash
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.view_partitions import opened_views

ColumnFunction = Callable[..., Column]


def tag_names(path: str) -> ColumnFunction:
    """Return what gives the tag of the message at a place."""

    def names(places: pa.Array) -> pa.Array:
        found = _read(path, places, "tags")
        return pa.array([found.get(place, {}).get("tags") for place in places.to_pylist()])

    return _function(names, "string")


def topic_names(path: str) -> ColumnFunction:
    """Return what gives the topic of the message at a place."""

    def names(places: pa.Array) -> pa.Array:
        found = _read(path, places, "topic")
        topics = [found.get(place, {}).get("topic") for place in places.to_pylist()]
        return pa.array(topics, pa.string())

    return _function(names, "string")


def tag_entries(path: str) -> ColumnFunction:
    """Return what gives the hash under which the index has the tag of the message at a place."""

    def hashes(places: pa.Array) -> pa.Array:
        found = _read(path, places, "topic", "tags")
        rows = [found.get(place, {}) for place in places.to_pylist()]
        return pa.array(
            [
                index_key_hash(f"{row['topic']}#T#{row['tags']}") if row.get("tags") else None
                for row in rows
            ],
            pa.int32(),
        )

    return _function(hashes, "int")


def key_names(path: str) -> ColumnFunction:
    """Return what gives the key of a hash, of the message at a place that has it."""

    def names(hashes: pa.Array, places: pa.Array) -> pa.Array:
        found = _read(path, places, "topic", "keys", "uniq_key")
        pairs = zip(hashes.to_pylist(), places.to_pylist(), strict=True)
        return pa.array([_key(found.get(place), key_hash) for key_hash, place in pairs])

    return _function(names, "string")


def _key(row: dict[str, Any] | None, key_hash: int) -> str | None:
    if row is None:
        return None
    words = [*(row["keys"] or "").split(KEY_SEPARATOR), row["uniq_key"] or ""]
    meant = (
        word for word in words if word and index_key_hash(f"{row['topic']}#{word}") == key_hash
    )
    return next(meant, None)


def _read(path: str, places: pa.Array, *columns: str) -> dict[int, dict[str, Any]]:
    """Return the records by their places; they are as few as the rows of an answer."""
    wanted = np.unique(places.to_numpy(zero_copy_only=False)).astype(np.int64)
    with opened_views(ReadOptions(path=path)) as views:
        rows = views.at(wanted, ["commit_log_offset", *columns]).to_pylist()
    return {row["commit_log_offset"]: row for row in rows}


def _function(function: Callable[..., pa.Array], kind: str) -> ColumnFunction:
    made: ColumnFunction = arrow_udf(function, kind)  # type: ignore[call-overload]
    return made
