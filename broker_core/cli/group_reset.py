"""`rocketpy group reset`: what a group reads next, by name, time or distance."""

from __future__ import annotations

from dataclasses import dataclass

from rocketpy.broker_core.cli.options import time_ms
from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import Screen, plain_table, print_json
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.resets import ResetTarget
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.errors import QueueNotFoundError

_COLUMNS = ("Queue>", "Before>", "After>", "To read>")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReset:
    """A queue in which a group is to read on elsewhere."""

    queue_id: int
    before: int | None
    after: int
    end: int
    broker: str | None = None  # of a cluster


def reset(
    at: At,
    group: str,
    topic: str,
    *,
    to: str,
    queue_id: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the next offsets of a group, and print them beside those of before."""
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli.cluster_groups import reset_offsets

        rows = reset_offsets(at, group, topic, to=to, queue_id=queue_id, dry_run=dry_run)
    else:
        with open_store(at, read_only=dry_run) as store:
            rows = _planned(store, group, topic, to, queue_id)
            if not dry_run:
                store.commit(group, topic, {row.queue_id: row.after for row in rows})
    if as_json:
        print_json([_members(row) for row in rows])
        return
    are_several = len({row.broker for row in rows}) > 1
    table = plain_table(*(["Broker"] if are_several else []), *_COLUMNS)
    for row in rows:
        old = f"{row.before:,}" if row.before is not None else "never read"
        cells = [f"{row.queue_id}", old, f"{row.after:,}", f"{row.end - row.after:,}"]
        table.add_row(*([row.broker] if are_several else []), *cells)
    if dry_run:
        table.caption = "Nothing was changed."
    Screen().print(table)


def _members(row: QueueReset) -> dict[str, object]:
    broker = {} if row.broker is None else {"broker": row.broker}
    return {**broker, "queue_id": row.queue_id, "before": row.before, "after": row.after}


def _planned(
    store: Store, group: str, topic: str, to: str, queue_id: int | None
) -> list[QueueReset]:
    stored = store.queues(topic)
    if queue_id is not None and queue_id not in stored:
        raise QueueNotFoundError(topic, queue_id, len(stored))
    before = store.committed(group, topic)
    return [
        QueueReset(
            queue_id=queue,
            before=before.get(queue),
            after=_offset_at(store, topic, queue, to, before.get(queue)),
            end=stored[queue][1],
        )
        for queue in stored
        if queue_id in (None, queue)
    ]


def _offset_at(store: Store, topic: str, queue_id: int, to: str, committed: int | None) -> int:
    first, end = store.queues(topic)[queue_id]
    target = ResetTarget.named(to)
    found = None if target is None else target.offset(first, end, committed)
    if found is not None:
        return found
    when = time_ms(to)
    assert when is not None
    return store.offset_by_time(topic, queue_id, when)
