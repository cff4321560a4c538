"""`rocketpy tail`: the newest messages of a topic, and those that come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from rich.text import Text

from rocketpy.broker_core.cli.json_lines import json_lines
from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import Screen, count_text, time_text
from rocketpy.broker_core.cli.wanted import Wanted
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.property_names import CAUSE

COLUMNS = (
    "store_timestamp", "queue_id", "queue_offset", "commit_log_offset", "tags", "keys", "body",
    "properties",
)  # fmt: skip
_SCHEMA = select(COLUMNS)
_EVERY_S = 0.2
_MOST = 10_000  # messages of a queue that are taken at once

Ends = dict[int, int]


def show(at: At, topic: str, wanted: Wanted, *, lines: int, follow: bool, as_json: bool) -> None:
    """Print the last messages by store time; then, if wished, each new one until interrupted."""
    output = TailOutput(as_json)
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli.cluster_messages import tail as tail_cluster

        tail_cluster(at, topic, wanted, output, lines=lines, follow=follow)
        return
    with open_store(at, read_only=True) as store:
        tail = _Tail(store, topic, wanted)
        ends = {queue_id: end for queue_id, (_, end) in store.queues(topic).items()}
        output.print(tail.last(lines, ends))
        if follow:
            _follow(tail, ends, output)


@dataclass(frozen=True, slots=True)
class _Tail:
    """The messages of a topic that are wanted, oldest first."""

    store: Store
    topic: str
    wanted: Wanted

    def last(self, lines: int, ends: Ends) -> pa.Table:
        """Return the newest; with a filter, from the index or from further and further back."""
        if self.wanted.key is not None:
            by_key = self.store.query(self.topic, key=self.wanted.key, columns=self._columns)
            found = self._shown(by_key.to_batches())
            limits = pa.array(
                [ends.get(each, 0) for each in found["queue_id"].to_pylist()], pa.int64()
            )
            found = found.filter(pc.less(found["queue_offset"], limits))  # the rest is followed
            return found.slice(max(found.num_rows - lines, 0))
        firsts = {queue_id: first for queue_id, (first, _) in self.store.queues(self.topic).items()}
        reach = lines
        while True:
            starts = {queue: max(firsts[queue], end - reach) for queue, end in ends.items()}
            found = self.between(starts, ends)
            if found.num_rows >= lines or starts == firsts:
                return found.slice(max(found.num_rows - lines, 0))
            reach *= 8

    def between(self, starts: Ends, ends: Ends) -> pa.Table:
        """Return the messages between some offsets of each queue."""
        return self._shown(
            self.store.read(
                self.topic,
                columns=self._columns,
                tags=self.wanted.tags,
                start=starts,
                end=ends,
            )
        )

    @property
    def _columns(self) -> list[str]:
        return [*COLUMNS, *(name for name in self.wanted.columns if name not in COLUMNS)]

    def _shown(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        rows = [self.wanted.filter(batch).select(list(COLUMNS)) for batch in batches]
        return pa.Table.from_batches(rows, _SCHEMA).sort_by("commit_log_offset")


def _follow(tail: _Tail, seen: Ends, output: TailOutput) -> None:
    with output.counting(tail.topic) as report:
        while True:
            stored = tail.store.queues(tail.topic)
            starts = {
                queue_id: max(seen.get(queue_id, 0), first)
                for queue_id, (first, _) in stored.items()
            }
            ends = {
                queue_id: min(end, starts[queue_id] + _MOST)
                for queue_id, (_, end) in stored.items()
            }
            if starts != ends:
                found = tail.between(starts, ends)
                output.print(found)
                report(found.num_rows)
            else:
                report(0)
            seen = ends
            if starts == ends:
                tail.store._store.wait_for_more(_EVERY_S)  # Apache's broker wakes nobody


class TailOutput:
    """Messages as lines: for people cut to the width of their terminal, for machines as JSON."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.shows_brokers = False  # to people; machines are told in any case
        self._console = Screen()

    @contextmanager
    def counting(self, topic: str) -> Iterator[Callable[[int], None]]:
        """Show how many messages came, in a line below them; it is there on a terminal only."""
        count, began = 0, time.monotonic()
        with self._console.status(f"{topic}: waiting") as status:

            def report(more: int) -> None:
                nonlocal count
                count += more
                rate = f"{count / max(time.monotonic() - began, 1):,.0f}/s"
                status.update(f"{topic}: {count_text(count, 'message')}, {rate}")

            yield report

    def print(self, messages: pa.Table) -> None:
        """Print messages."""
        if self._as_json:
            for batch in messages.to_batches():
                sys.stdout.buffer.write(b"".join(json_lines(batch)))
            sys.stdout.buffer.flush()
            return
        # One by one: a person reads them.
        for row in messages.to_pylist(maps_as_pydicts="strict"):
            self._console.print(_line(row, self.shows_brokers), overflow="ellipsis", no_wrap=True)


def _line(row: dict[str, object], shows_broker: bool) -> Text:
    stored, body = row["store_timestamp"], row["body"]
    assert isinstance(body, bytes)
    text = Text(time_text(round(stored.timestamp() * 1000)), style="dim")  # type: ignore[attr-defined]
    broker = f"{row['broker']}:" if shows_broker else ""
    text.append(f"  {broker}{row['queue_id']}/{row['queue_offset']}", style="cyan")
    for name, style in (("tags", "green"), ("keys", "yellow")):
        if row[name]:
            text.append(f"  {row[name]}", style=style)
    cause = row["properties"].get(CAUSE)  # type: ignore[attr-defined]
    if cause:  # sent back: before the body, which may be cut at the end of the line
        text.append(f"  cause: {_printable(cause)}", style="red")
    shown = body.decode("utf-8", "backslashreplace")
    return text.append(f"  {_printable(shown)}", style="default")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
