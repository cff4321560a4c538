"""Reading all there is, and holding it against what was written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.damage.small_store import Original, Row, plain_rows

import rocketpy
from rocketpy.broker_core.errors import RocketPyError

SOAK = bool(os.environ.get("ROCKETPY_SOAK"))
Way = tuple[str, ...]  # how rows were asked for: "read" and a topic, "query", a topic and a key, …


def problems(path: Path) -> list[str]:
    """Return what verify reports; a store that is refused is reported by the refusal."""
    try:
        with rocketpy.open(path, read_only=True) as store:
            found = list(store.verify())
    except RocketPyError as refusal:
        return [str(refusal)]
    failed = [str(problem) for problem in found if "could not be checked" in problem.text]
    assert failed == []
    return [str(problem) for problem in found]


def rows_until_error(read: Callable[[], Iterable[Any]]) -> tuple[list[Row], RocketPyError | None]:
    """Return the rows that were read, and the error that ended it; another error passes."""
    rows: list[Row] = []
    try:
        for batch in read():
            rows += plain_rows(batch)
    except RocketPyError as error:
        return rows, error
    return rows, None


def wrong_rows(path: Path, original: Original) -> list[tuple[Way, Row]]:
    """Return rows that were read and are not what was written there, by every way to read."""
    try:
        store = rocketpy.open(path, read_only=True)
    except RocketPyError:
        return []
    with store:
        return [
            (way, row)
            for way, read in _ways(store, original)
            for row in rows_until_error(read)[0]
            if original.rows.get(row["commit_log_offset"]) != row or not _is_meant(way, row)
        ]


def _is_meant(way: Way, row: Row) -> bool:
    if way[0] == "read":
        return bool(row["topic"] == way[1])
    if way[0] == "query":
        words = [*(row["keys"] or "").split(), row["uniq_key"]]
        return bool(row["topic"] == way[1] and way[2] in words)
    return way[0] != "get" or bool(row["msg_id"] == way[1])


def _ways(
    store: rocketpy.Store, original: Original
) -> Iterator[tuple[Way, Callable[[], Iterable[Any]]]]:
    yield ("scan",), partial(store.scan, columns="*")
    for topic in original.topics():
        yield ("read", topic), partial(store.read, topic, columns="*")
        yield ("read", topic), partial(store.read, topic, columns="*", tags="bulk || tag1")
    for topic, key in original.keys[:: 1 if SOAK else 11]:
        yield ("query", topic, key), partial(_query, store, topic, key)
    for row in list(original.rows.values())[:: 1 if SOAK else 11]:
        yield ("get", row["msg_id"]), partial(_get, store, row["msg_id"])


def _query(store: rocketpy.Store, topic: str, key: str) -> list[Any]:
    return [store.query(topic, key=key, columns="*")]


def _get(store: rocketpy.Store, msg_id: str) -> list[Any]:
    return [store.get(msg_id)]
