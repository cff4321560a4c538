"""`rocketpy store repair`: what was made, what was stepped over, what is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import typer

from rocketpy.broker_core.cli.exits import FOUND
from rocketpy.broker_core.cli.terminal import count_text, print_json, progress_bar, size_text
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.property_names import LOST
from rocketpy.broker_core.storage.repair import RepairReport, repair_in_place, repair_to

_MOST_LINES = 100  # of one kind; --json has all


def mend(
    path: Path,
    to: Path | None,
    *,
    placeholders: bool,
    queue_file_entries: int | None,
    as_json: bool,
) -> None:
    """Repair to a new folder, or in place; exit with 1 if something is lost."""
    config = (
        StoreConfig(consume_queue_file_entries=queue_file_entries)
        if queue_file_entries
        else StoreConfig()
    )
    with progress_bar() as progress:
        if to is not None:
            report = repair_to(
                path, to, config=config, placeholders=placeholders, progress=progress
            )
        else:
            report = repair_in_place(
                path, config=config, placeholders=placeholders, progress=progress
            )
    if as_json:
        print_json(_document(report))
    else:
        for line in _lines(report):
            typer.echo(line)
    raise typer.Exit(0 if report.is_whole else FOUND)


def _document(report: RepairReport) -> dict[str, object]:
    return {
        **asdict(report),
        "skipped": [skipped._asdict() for skipped in report.skipped],
        "lost": [lost._asdict() for lost in report.lost],
        "is_whole": report.is_whole,
    }


def _lines(report: RepairReport) -> Iterator[str]:
    made = (count_text(report.records, "message"), count_text(len(report.topics), "topic"))
    yield f"{report.path}: {made[0]} of {made[1]} in {count_text(report.queues, 'queue')}"
    if report.replaced is not None:
        yield f"the files that were replaced are in {report.replaced}"
    if report.repeated:
        taken = count_text(report.repeated, "offset")
        yield f"{taken} taken by a newer message, as when a topic is deleted and made anew"
    if report.unknown_topics:
        names = ", ".join(report.unknown_topics)
        yield f"not in config/topics.json, deleted once or forgotten: {names}"
    if report.skipped:
        total = sum(skipped.size for skipped in report.skipped)
        yield f"{size_text(total)} of the commit log could not be read:"
        yield from _some([f"  {s.start} to {s.end}: {s.reason}" for s in report.skipped])
    if report.lost:
        total = sum(lost.end - lost.start for lost in report.lost)
        yield f"{count_text(total, 'message is', 'messages are')} lost:"
        yield from _some([f"  {_queue_range(*lost)}" for lost in report.lost])
    if report.placeholders:
        yield f"for {report.placeholders:,} of them stands an empty one with the property {LOST}"


def _queue_range(topic: str, queue_id: int, start: int, end: int) -> str:
    offsets = f"offset {start}" if end == start + 1 else f"offsets {start} to {end - 1}"
    return f"{topic} queue {queue_id}: {offsets}"


def _some(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[:_MOST_LINES], f"  … and {len(lines) - _MOST_LINES} more: see --json"]
