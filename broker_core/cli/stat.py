"""`rocketpy store stat`: statistics as tables, or as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from rocketpy.broker_core.cli.terminal import (
    Screen,
    count_text,
    facts_table,
    plain_table,
    print_json,
    size_text,
    time_text,
)
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.storage.statistics import (
    GroupStatistics,
    StoreState,
    StoreStatistics,
    TopicStatistics,
    statistics,
)
from rocketpy.broker_core.storage.store import MessageStore


def show(path: Path, *, by_queue: bool, everything: bool, as_json: bool) -> None:
    """Print what is in a store."""
    found = statistics(MessageStore(path, StoreConfig(), clock=SystemClock(), read_only=True))
    if as_json:
        print_json(_document(found))
        return
    console = Screen()
    console.print(facts_table(_facts(found)))
    shown = [topic for topic in found.topics if everything or topic.messages or not topic.is_system]
    if shown:
        console.print()
        console.print(_topics_by_queue(shown) if by_queue else _topics(shown))
    hidden = len(found.topics) - len(shown)
    if hidden:
        text = f"and {count_text(hidden, 'empty topic')} of the system: --all shows them"
        console.print(Text(text, style="dim"))
    if found.groups:
        console.print()
        console.print(_groups_by_queue(found) if by_queue else _groups(found.groups))


def _document(found: StoreStatistics) -> dict[str, object]:
    topics = [
        {
            **asdict(topic),
            "messages": topic.messages,
            "queues": [{**asdict(queue), "messages": queue.messages} for queue in topic.queues],
        }
        for topic in found.topics
    ]
    return {**asdict(found), "path": str(found.path), "topics": topics}


def _facts(found: StoreStatistics) -> Iterator[tuple[str, str | Text]]:
    log, sizes = found.log, found.geometry
    yield "store", Text(str(found.path), style="bold")
    yield "state", _state(found.state)
    yield "on disk", f"{size_text(found.size_on_disk)} in all, {size_text(log.size_on_disk)} of log"
    end = f"{log.end:,}" if log.end is not None else "a place that no queue tells"
    yield "log", f"from {log.start:,} to {end} in {count_text(log.files, 'file')}"
    if log.first_stored_ms is not None:
        last = time_text(log.last_stored_ms) if log.last_stored_ms is not None else "?"
        yield "stored", f"{time_text(log.first_stored_ms)} to {last}"
    entries = count_text(found.index.entries, "entry", "entries")
    yield "index", f"{entries} in {count_text(found.index.files, 'file')}"
    if log.has_checksums is not None:
        yield "records", f"{'with' if log.has_checksums else 'without'} check sums, by the newest"
    yield (
        "file sizes",
        f"log {size_text(sizes.commit_log_file_size)}, "
        f"queue {sizes.consume_queue_file_entries:,} entries"
        f"{' and extensions' if sizes.consume_queue_ext else ''}, "
        f"index {sizes.index_slots:,} slots and {sizes.index_entries:,} entries",
    )


def _state(state: StoreState) -> Text:
    if state.lock_holder_pid is not None:
        return Text(f"in use: process {state.lock_holder_pid} holds the lock", style="yellow")
    if state.is_clean:
        return Text("stopped cleanly", style="green")
    if state.is_abort_pid_alive:
        return Text(f"open in process {state.abort_pid}, or left by it uncleanly", style="yellow")
    who = f": process {state.abort_pid} is gone" if state.abort_pid is not None else ""
    return Text(f"not stopped cleanly{who}; opening it recovers it", style="red")


def _topic_name(topic: TopicStatistics) -> Text:
    name = Text(topic.name, style="dim" if topic.is_system else "")
    return name if topic.read_queues is not None else name.append(" (not in topics.json)", "red")


def _topics(topics: list[TopicStatistics]) -> Table:
    table = plain_table("Topic", "Queues>", "Messages>", "Offsets")
    for topic in topics:
        count = max(topic.read_queues or 0, len(topic.queues))
        table.add_row(_topic_name(topic), f"{count:,}", f"{topic.messages:,}", _range(topic))
    return table


def _range(topic: TopicStatistics) -> str:
    """Return the offsets that the queues of a topic have between them."""
    if not topic.messages:
        return ""
    low = min(queue.min_offset for queue in topic.queues)
    return f"{low:,} to {max(queue.max_offset for queue in topic.queues) - 1:,}"


def _topics_by_queue(topics: list[TopicStatistics]) -> Table:
    table = plain_table("Topic", "Queue>", "First>", "Next>", "Messages>")
    for topic in topics:
        name = _topic_name(topic)
        for queue in topic.queues:
            numbers = (queue.queue_id, queue.min_offset, queue.max_offset, queue.messages)
            table.add_row(name, *(f"{number:,}" for number in numbers))
            name = Text("")
        if not topic.queues:
            table.add_row(name, "", "", "", "0")
    return table


def _groups(groups: tuple[GroupStatistics, ...]) -> Table:
    table = plain_table("Group", "Topic", "Lag>")
    for group in groups:
        table.add_row(group.group, group.topic, _lag(group.lag))
    return table


def _groups_by_queue(found: StoreStatistics) -> Table:
    ends = {
        (topic.name, queue.queue_id): queue.max_offset
        for topic in found.topics
        for queue in topic.queues
    }
    table = plain_table("Group", "Topic", "Queue>", "Next>", "Lag>")
    for group in found.groups:
        for queue_id, offset in group.committed.items():
            lag = max(ends.get((group.topic, queue_id), 0) - offset, 0)
            table.add_row(group.group, group.topic, f"{queue_id:,}", f"{offset:,}", _lag(lag))
    return table


def _lag(lag: int) -> Text:
    return Text(f"{lag:,}", style="yellow" if lag else "")
