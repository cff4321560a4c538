"""`rocketpy group reset`: what a group reads next, by name, time or distance."""

from __future__ import annotations

import re
from pathlib import Path

from rocketpy.broker_core.cli.options import time_ms
from rocketpy.broker_core.cli.terminal import Screen, plain_table, print_json
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.errors import QueueNotFoundError

_DISTANCE = re.compile(r"[+-]\d{1,15}")


def reset(
    path: Path,
    group: str,
    topic: str,
    *,
    to: str,
    queue_id: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the next offsets of a group, and print them beside those of before."""
    with open_store(path, read_only=dry_run) as store:
        stored = store.queues(topic)
        if queue_id is not None and queue_id not in stored:
            raise QueueNotFoundError(topic, queue_id, len(stored))
        before = store.committed(group, topic)
        after = {
            queue: _offset_at(store, topic, queue, to, before.get(queue))
            for queue in stored
            if queue_id in (None, queue)
        }
        if not dry_run:
            store.commit(group, topic, after)
    if as_json:
        rows = [
            {"queue_id": queue, "before": before.get(queue), "after": at}
            for queue, at in after.items()
        ]
        print_json(rows)
        return
    table = plain_table("Queue>", "Before>", "After>", "To read>")
    for queue, at in after.items():
        old = f"{before[queue]:,}" if queue in before else "never read"
        table.add_row(f"{queue}", old, f"{at:,}", f"{stored[queue][1] - at:,}")
    if dry_run:
        table.caption = "Nothing was changed."
    Screen().print(table)


def _offset_at(store: Store, topic: str, queue_id: int, to: str, committed: int | None) -> int:
    first, end = store.queues(topic)[queue_id]
    if to == "earliest":
        return first
    if to == "latest":
        return end
    if _DISTANCE.fullmatch(to):
        start = committed if committed is not None else first
        return min(max(start + int(to), first), end)
    when = time_ms(to)
    assert when is not None
    return store.offset_by_time(topic, queue_id, when)
