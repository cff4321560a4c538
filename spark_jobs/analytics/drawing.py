"""What the pictures of plots.py are made of: axes, bars, lines, words, colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from rocketpy.broker_core.errors import RocketPyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours without black, which is for text; neighbours are far apart.
PALETTE = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"
BLUE, ORANGE, GREEN, VERMILION, GREY = *PALETTE[:3], PALETTE[5], "#BBBBBB"
SIZE_INCHES = 8.0, 3.6
MOST_BARS = 20
_LEAST_BARS = 3  # that there is room for: a single one would be a wall
COUNT = "{x:,.0f}"  # how an axis of counts is written
_MOST_LETTERS = 34
_REST = "all others"

Row = dict[str, Any]
Answer: TypeAlias = DataFrame | pa.Table  # a table is what toArrow() of the DataFrame gave


class PlotError(RocketPyError):
    """Is raised when a picture cannot be made; says what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def axes_of(ax: Axes | None) -> Axes:
    """Return the axes that were given, or those of a new figure.

    Raises:
        PlotError: matplotlib is missing.
    """
    try:
        from matplotlib import pyplot
    except ImportError as cause:
        raise PlotError("plots need matplotlib: pip install 'rocketpy-spark[plot]'") from cause
    if ax is None:
        _, ax = pyplot.subplots(figsize=SIZE_INCHES, layout="constrained")
    return ax


def rows_of(answer: Answer, function: str) -> list[Row]:
    """Return the rows of an answer.

    Raises:
        PlotError: there are none.
    """
    table = answer if isinstance(answer, pa.Table) else answer.toArrow()
    rows: list[Row] = table.to_pylist()
    if not rows:
        raise PlotError(f"there is nothing to draw: {function}() found no rows")
    return rows


def largest(rows: Sequence[Row], by: str, value: str = "messages") -> list[str]:
    """Return the names with most messages, as many as there are colours, the largest first."""
    totals = Counter[str]()
    for row in rows:
        totals[row[by]] += row[value] or 0
    return [name for name, _ in totals.most_common(len(PALETTE))]


def lines(ax: Axes, rows: Sequence[Row], value: str, *, fills: bool) -> None:
    """Draw a line for each of the largest topics; `fills` says that no row means 0."""
    for name, colour in zip(largest(rows, "topic"), PALETTE, strict=False):
        values = {row["start"]: row[value] for row in rows if row["topic"] == name}
        if fills:
            step = rows[0]["end"] - rows[0]["start"]
            first, last = min(row["start"] for row in rows), max(row["start"] for row in rows)
            edges = {at for start in values for at in (start - step, start + step)} | {first, last}
            values |= {at: 0 for at in edges - values.keys() if first <= at <= last}
        times = sorted(values)
        marker = None if fills and len(times) > 1 else "o"
        ax.plot(times, [values[at] for at in times], color=colour, marker=marker, label=name)
    ax.set_ylim(bottom=0)


def over_time(ax: Axes, title: str, what: str) -> Axes:
    """Finish a picture whose x axis is time."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_formatter(formatter)
    ax.set_ylim(bottom=0)
    label(ax, title, "time (UTC)", what)
    legend(ax)
    return ax


def pareto(rows: Sequence[Row], name: str, title: str, ax: Axes) -> Axes:
    """Draw shares as bars and cumulative shares as a line."""
    rows = rows[:MOST_BARS]
    many = len({row["topic"] for row in rows}) > 1
    texts = [f"{row['topic']}: {row[name] or '-'}" if many else row[name] or "-" for row in rows]
    ticks = range(len(rows))
    ax.bar(ticks, [100 * row["share"] for row in rows], 0.7, color=BLUE, label="share")
    running = [100 * row["cumulative_share"] for row in rows]
    ax.plot(ticks, running, color=ORANGE, marker="o", label="cumulative")
    ax.set_xticks(ticks, [short(text) for text in texts], rotation=35, ha="right")
    ax.set_ylim(bottom=0)
    label(ax, title, "", "% of all messages")
    legend(ax)
    return ax


def causes(rows: Sequence[Row], title: str, ax: Axes) -> Axes:
    """Draw messages by cause, a colour for each group."""
    named = [row | {"cause": row["cause"] or "no cause given"} for row in rows]
    return stacked(ax, named, ("cause", "consumer_group"), title)


def stacked(ax: Axes, rows: Sequence[Row], by: tuple[str, str], title: str) -> Axes:
    """Draw lying bars of messages by the first column, divided by the second."""
    first, second = by
    totals = Counter[str]()
    parts = Counter[tuple[str, str]]()
    colours = largest(rows, second)
    for row in rows:
        part = row[second] if row[second] in colours else _REST
        totals[row[first]] += row["messages"]
        parts[row[first], part] += row["messages"]
    names = [name for name, _ in totals.most_common(MOST_BARS)]
    lefts = [0] * len(names)
    for part, colour in zip([*colours, _REST], [*PALETTE[: len(colours)], GREY], strict=True):
        widths = [parts[name, part] for name in names]
        if any(widths):
            ax.barh(range(len(names)), widths, 0.7, left=lefts, color=colour, label=part)
        lefts = [left + width for left, width in zip(lefts, widths, strict=True)]
    _names_down(ax, names)
    for tick, name in enumerate(names):
        ax.text(totals[name], tick, f" {totals[name]:,}", va="center", fontsize=9)
    ax.margins(x=0.1)
    ax.xaxis.set_major_formatter(COUNT)
    label(ax, title, "messages", "")
    legend(ax)
    return ax


def bars(ax: Axes, names: Sequence[str], values: Sequence[int], colour: str) -> None:
    """Draw lying bars, the first on top."""
    ax.barh(range(len(names)), values, 0.7, color=colour)
    _names_down(ax, names)


def _names_down(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.set_ylim(max(len(names), _LEAST_BARS) - 0.5, -0.5)


def label(ax: Axes, title: str, x: str, y: str) -> None:
    """Give a picture its words, and take away what says nothing."""
    ax.set_title(title, loc="left", fontweight="bold")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)


def legend(ax: Axes) -> None:
    """Add a legend beside the picture, where it hides nothing; a single name goes to the title."""
    _, names = ax.get_legend_handles_labels()
    if len(names) == 1:
        ax.set_title(f"{ax.get_title(loc='left')}: {names[0]}", loc="left", fontweight="bold")
    elif names:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def short(text: str) -> str:
    """Return a text that fits an axis."""
    cut = [line if len(line) <= _MOST_LETTERS else line[: _MOST_LETTERS - 1] + "…"
           for line in text.split("\n")]  # fmt: skip
    return "\n".join(cut)


def bytes_text(size: int) -> str:
    """Return a power of two as people read it."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):g} {unit}"
    return f"{size} B"


def seconds_text(seconds: float) -> str:
    """Return a length of time as people read it."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
