"""`rocketpy tail`: the newest messages of a topic, and those that come."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.status import Status
from rich.text import Text

from rocketpy.broker_core.cli.json_lines import json_lines
from rocketpy.broker_core.cli.terminal import count_text, time_text
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store

_COLUMNS = (
    "store_timestamp", "queue_id", "queue_offset", "commit_log_offset", "tags", "keys", "body",
    "properties",
)  # fmt: skip
_EVERY_S = 0.2
_MOST = 10_000  # messages of a queue that are taken at once

Ends = dict[int, int]


def show(
    path: Path, topic: str, *, lines: int, tags: str | None, follow: bool, as_json: bool
) -> None:
    """Print the last messages by store time; then, if wished, each new one until interrupted."""
    with open_store(path, read_only=True) as store:
        output = _Output(as_json)
        ends = {queue_id: end for queue_id, (_, end) in store.queues(topic).items()}
        output.print(_last(store, topic, ends, lines, tags))
        if follow:
            _follow(store, topic, ends, tags, output)


def _last(store: Store, topic: str, ends: Ends, lines: int, tags: str | None) -> pa.Table:
    """Return the newest messages; where only some tags count, further and further back."""
    firsts = {queue_id: first for queue_id, (first, _) in store.queues(topic).items()}
    reach = lines
    while True:
        starts = {queue_id: max(firsts[queue_id], end - reach) for queue_id, end in ends.items()}
        found = _read(store, topic, starts, ends, tags)
        if found.num_rows >= lines or starts == firsts:
            return found.slice(max(found.num_rows - lines, 0))
        reach *= 8


def _read(store: Store, topic: str, starts: Ends, ends: Ends, tags: str | None) -> pa.Table:
    reader = store.read(topic, columns=_COLUMNS, tags=tags, start=starts, end=ends)
    return reader.read_all().sort_by("commit_log_offset")


def _follow(store: Store, topic: str, seen: Ends, tags: str | None, output: _Output) -> None:
    with output.status(topic) as status:
        count, began = 0, time.monotonic()
        while True:
            held = store.queues(topic)
            starts = {
                queue_id: max(seen.get(queue_id, 0), first) for queue_id, (first, _) in held.items()
            }
            ends = {
                queue_id: min(end, starts[queue_id] + _MOST) for queue_id, (_, end) in held.items()
            }
            if starts != ends:
                found = _read(store, topic, starts, ends, tags)
                output.print(found)
                count += found.num_rows
            seconds = time.monotonic() - began
            status.update(
                f"{topic}: {count_text(count, 'message')}, {count / max(seconds, 1):,.0f}/s"
            )
            seen = ends
            if starts == ends:
                time.sleep(_EVERY_S)


class _Output:
    """Messages as lines: for people cut to the width of the terminal, for machines as JSON."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())

    def status(self, topic: str) -> Status:
        """Return the line below the messages; it is there on a terminal only."""
        return self._console.status(f"{topic}: waiting")

    def print(self, messages: pa.Table) -> None:
        """Print messages."""
        if self._as_json:
            for batch in messages.to_batches():
                sys.stdout.buffer.write(b"".join(json_lines(batch)))
            sys.stdout.buffer.flush()
            return
        for row in messages.drop_columns("properties").to_pylist():
            self._console.print(_line(row), overflow="ellipsis", no_wrap=True)


def _line(row: dict[str, object]) -> Text:
    stored, body = row["store_timestamp"], row["body"]
    assert isinstance(body, bytes)
    text = Text(time_text(round(stored.timestamp() * 1000)), style="dim")  # type: ignore[attr-defined]
    text.append(f"  {row['queue_id']}/{row['queue_offset']}", style="cyan")
    for name, style in (("tags", "green"), ("keys", "yellow")):
        if row[name]:
            text.append(f"  {row[name]}", style=style)
    shown = body.decode("utf-8", "backslashreplace")
    return text.append(
        "  " + "".join(c if c.isprintable() else " " for c in shown), style="default"
    )
