"""Asks Apache and rocketpy the same questions about one store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.interop.our_side import offsets_by_key
from tests.interop.rocketmq_tool import RocketMqTool

import rocketpy

Message = dict[str, Any]

DISTINCT_TIMES = 6


def keys_found_by_apache(
    tool: RocketMqTool, messages: Sequence[Message]
) -> dict[tuple[str, str], set[int]]:
    """Return what Apache's index finds for each key, in the form of offsets_by_key."""
    return {
        (answer["topic"], answer["key"]): {m["commitLogOffset"] for m in answer["messages"]}
        for answer in tool.query(offsets_by_key(messages))
    }


def keys_found_by_us(
    store: rocketpy.Store, messages: Sequence[Message]
) -> dict[tuple[str, str], set[int]]:
    """Return what our index finds for each key, in the form of offsets_by_key."""
    found = {}
    for topic, key in offsets_by_key(messages):
        table = store.query(topic, key=key, columns=["commit_log_offset"])
        found[topic, key] = set(table["commit_log_offset"].to_pylist())
    return found


def telling_times(messages: Iterable[Message]) -> dict[str, list[int]]:
    """Return per topic the times at which a wrong search shows: each edge, and beside it."""
    times: dict[str, set[int]] = {}
    for message in messages:
        times.setdefault(message["topic"], set()).add(message["storeTimestamp"])
    telling = {}
    for topic, all_times in times.items():
        ordered = sorted(all_times)
        step = max(1, len(ordered) // DISTINCT_TIMES)
        chosen = {ordered[0], ordered[-1], *ordered[::step]}
        around = {time + change for time in chosen for change in (-1, 0, 1)}
        telling[topic] = sorted({0, *around, ordered[-1] + 3_600_000})
    return telling


def offsets_found_by_us(store: rocketpy.Store, times: Mapping[str, Sequence[int]]) -> list[Message]:
    """Return bounds and offsets by time of each queue as RocketMqTool.offsets does."""
    return [
        {
            "topic": topic,
            "queueId": queue_id,
            "min": low,
            "max": high,
            "lower": [store.offset_by_time(topic, queue_id, t, boundary="lower") for t in asked],
            "upper": [store.offset_by_time(topic, queue_id, t, boundary="upper") for t in asked],
        }
        for topic, asked in times.items()
        for queue_id, (low, high) in sorted(store.queues(topic).items())
    ]
