"""Pictures of the answers: one function for each, answer in, matplotlib Axes out.

They take what the functions of the same names return, and collect its few rows; or a table of
those rows, to draw them again without asking Spark. Without an Axes of yours each makes its own
figure. Colours are those of Okabe and Ito, which people with any kind of colour blindness can tell
apart. matplotlib is an extra: `pip install 'rocketpy-spark[plot]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.spark_jobs.analytics import drawing
from rocketpy.spark_jobs.analytics.drawing import (
    BLUE,
    COUNT,
    GREEN,
    GREY,
    MOST_BARS,
    ORANGE,
    VERMILION,
    Answer,
    axes_of,
    rows_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def throughput(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw messages per second of each topic over time."""
    rows, ax = rows_of(answer, "throughput"), axes_of(ax)
    drawing.lines(ax, rows, "messages_per_s", fills=True)
    return drawing.over_time(ax, "Throughput by topic", "messages per second")


def size_histogram(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw how many messages there are of each size, a colour for each topic."""
    rows, ax = rows_of(answer, "size_histogram"), axes_of(ax)
    names = drawing.largest(rows, "topic")
    sizes = sorted({row["from_bytes"] for row in rows})
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        counts = {row["from_bytes"]: row["messages"] for row in rows if row["topic"] == name}
        ticks = [tick + (number - (len(names) - 1) / 2) * width for tick in range(len(sizes))]
        heights = [counts.get(size, 0) for size in sizes]
        ax.bar(ticks, heights, width, label=name, color=drawing.PALETTE[number])
    ax.set_xticks(range(len(sizes)), [drawing.bytes_text(size) for size in sizes])
    ax.yaxis.set_major_formatter(COUNT)
    drawing.label(
        ax, "Sizes of messages", "size of the record, from (up to twice as much)", "messages"
    )
    drawing.legend(ax)
    return ax


def message_sizes(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the median, 95th and 99th percentile and maximum of each topic, on a log scale."""
    rows, ax = rows_of(answer, "message_sizes"), axes_of(ax)
    rows = rows[:MOST_BARS]
    marks = ("p50", BLUE, "o"), ("p95", ORANGE, "s"), ("p99", GREEN, "^"), ("max", VERMILION, "D")
    ticks = range(len(rows))
    ax.hlines(ticks, [r["p50"] for r in rows], [r["max"] for r in rows], color=GREY, zorder=1)
    for name, colour, marker in marks:
        values = [row[name] for row in rows]
        ax.scatter(values, ticks, label=name, color=colour, marker=marker, zorder=2)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: drawing.bytes_text(int(value)))
    ax.set_yticks(ticks, [drawing.short(row["topic"]) for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    drawing.label(ax, "Sizes of messages by topic", "size of the record", "")
    drawing.legend(ax)
    return ax


def hot_tags(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the share of each tag, and the cumulative share as a line."""
    return drawing.pareto(rows_of(answer, "hot_tags"), "tag", "Hottest tags", axes_of(ax))


def hot_keys(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the share of each key, and the cumulative share as a line."""
    return drawing.pareto(rows_of(answer, "hot_keys"), "key", "Hottest keys", axes_of(ax))


def key_skew(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the messages of each queue, those of its hottest key in another colour."""
    rows, ax = rows_of(answer, "key_skew"), axes_of(ax)
    ticks = range(len(rows))
    hottest = [row["hottest_messages"] for row in rows]
    rest = [row["messages"] - row["hottest_messages"] for row in rows]
    ax.bar(ticks, hottest, 0.7, color=ORANGE, label="of the queue's hottest key")
    ax.bar(ticks, rest, 0.7, bottom=hottest, color=BLUE, label="of all other keys")
    mean = sum(row["messages"] for row in rows) / len(rows)
    ax.axhline(mean, color="black", linewidth=1, linestyle="--", label="mean of the queues")
    is_one = len({row["broker"] for row in rows}) == 1
    names = [
        str(row["queue_id"]) if is_one else f"{row['broker']}:{row['queue_id']}" for row in rows
    ]
    ax.set_xticks(ticks, names)
    ax.yaxis.set_major_formatter(COUNT)
    drawing.label(ax, "Messages by queue", "queue", "messages")
    drawing.legend(ax)
    return ax


def lag(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the lag of each group in messages, with the age of the oldest beside the bar."""
    rows, ax = rows_of(answer, "lag"), axes_of(ax)
    rows = [row for row in rows if row["messages"] is not None][:MOST_BARS]
    if not rows:
        raise drawing.PlotError("there is nothing to draw: all topics of the groups are gone")
    names = [
        f"{drawing.short(row['consumer_group'])}\n{drawing.short(row['topic'])}" for row in rows
    ]
    drawing.bars(ax, names, [row["messages"] for row in rows], BLUE)
    for tick, row in enumerate(rows):
        age = f", oldest {drawing.seconds_text(row['age_seconds'])}" if row["messages"] else ""
        text = f" {row['messages']:,}{age}"
        ax.text(row["messages"], tick, text, va="center", fontsize=9)
    ax.set_xlim(0, max(max(row["messages"] for row in rows), 1) * 1.35)
    ax.xaxis.set_major_formatter(COUNT)
    drawing.label(ax, "Lag by group and topic", "messages not yet consumed", "")
    return ax


def backlog(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw what waits now by the time when it came: the least lag there was."""
    rows, ax = rows_of(answer, "backlog"), axes_of(ax)
    times = [rows[0]["start"], *(row["end"] for row in rows)]
    values = [0, *(row["backlog"] for row in rows)]
    ax.fill_between(times, values, color=BLUE, alpha=0.25)
    ax.plot(times, values, color=BLUE)
    ax.yaxis.set_major_formatter(COUNT)
    title = "Backlog: what waits now, by the time when it came"
    return drawing.over_time(ax, title, "messages")


def lag_over_time(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw the lag that a group had in each topic."""
    rows, ax = rows_of(answer, "lag_over_time"), axes_of(ax)
    drawing.lines(ax, rows, "messages", fills=False)
    ax.yaxis.set_major_formatter(COUNT)
    return drawing.over_time(ax, "Lag over time", "messages not yet consumed")


def retries(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw how many messages came once more, by group and cause."""
    return drawing.causes(rows_of(answer, "retries"), "Retries by cause", axes_of(ax))


def dead_letters(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw how many messages were given up, by group and cause."""
    return drawing.causes(rows_of(answer, "dead_letters"), "Dead letters by cause", axes_of(ax))


def delay_accuracy(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw how late the messages of each delay level were: median, 99th percentile, maximum."""
    rows, ax = rows_of(answer, "delay_accuracy"), axes_of(ax)
    marks = ("p50_ms", "median", BLUE), ("p99_ms", "p99", ORANGE), ("max_ms", "max", VERMILION)
    for number, (column, name, colour) in enumerate(marks):
        ticks = [tick + (number - 1) * 0.26 for tick in range(len(rows))]
        heights = [row[column] / 1000 for row in rows]
        drawn = ax.bar(ticks, heights, 0.24, color=colour, label=name)
        ax.bar_label(drawn, fmt="{:.3g}", fontsize=9)
    names = [f"level {row['level']}" if row["kind"] == "level" else "time" for row in rows]
    counts = [f"{name}\n({row['messages']:,})" for name, row in zip(names, rows, strict=True)]
    ax.set_xticks(range(len(rows)), counts)
    drawing.label(
        ax, "Lateness of delayed messages", "delay (messages)", "seconds after the due time"
    )
    drawing.legend(ax)
    return ax


def producers(answer: Answer, ax: Axes | None = None) -> Axes:
    """Draw how many messages each host sent, a colour for each topic."""
    rows, ax = rows_of(answer, "producers"), axes_of(ax)
    return drawing.stacked(ax, rows, ("host", "topic"), "Messages by producing host")
