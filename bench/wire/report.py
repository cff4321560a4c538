"""The cells as a table in Markdown, and the aims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from measure import Figure

from wire.cells import Cell
from wire.sides import APACHE, FLOOR, OURS

AIMS = {
    "send, 1 thread": 2.0,
    "send, 16 threads": 1.5,
    "batches of 100, 1 thread": 1.0,
    "batches of 100, 16 threads": 1.0,
    "pull all, 32 asked for": 1.5,
    "pull all, 1024 asked for": 1.5,
}
CPU_AIM = "<= 40"
READY_AIM, MEMORY_AIM = "<= 1", "<= 120"
HEADINGS = (
    "128 B",
    "messages/s Apache",
    "rocketpy",
    "times",
    "aim",
    "floor, times",
    "broker CPU a request, µs",
    "messages a request",
    "p50 / p99, ms",
)


def markdown(cells: Sequence[Cell]) -> str:
    """Return a table with a line per cell; two values are Apache's and ours."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(_cells, cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figures(cells: Sequence[Cell]) -> Iterator[Figure]:
    """Yield the aims of the cells."""
    for cell in cells:
        aim = _aim(cell)
        yield Figure(f"{cell.name}, messages/s of Apache", _times(cell), "times", aim)
    for cell in cells:
        if cell.name in ("send, 1 thread", "send, 16 threads"):
            cpu = cell.least_us(OURS)
            yield Figure(f"{cell.name}, broker's CPU for a request", cpu, "µs", CPU_AIM)


def _aim(cell: Cell) -> str:
    return f">= {AIMS[cell.name]}" if cell.name in AIMS else ""


def _times(cell: Cell) -> float:
    return _times_of(cell, OURS)


def _times_of(cell: Cell, side: str) -> float:
    return cell.best(side).messages_per_s / cell.best(APACHE).messages_per_s


def _cells(cell: Cell) -> tuple[str, ...]:
    sides = [cell.best(side) for side in (APACHE, OURS)]
    late = [f"{run.p50_us / 1000:.2f} / {run.p99_us / 1000:.2f}" for run in sides]
    refused = sum(run.refused for runs in cell.runs.values() for run in runs)
    return (
        cell.name + (f" ({refused} sends failed)" if refused else ""),
        *(f"{run.messages_per_s:,.0f}" for run in sides),
        f"{_times(cell):.2f}",
        _aim(cell),
        f"{_times_of(cell, FLOOR):.2f}" if FLOOR in cell.runs else "",
        "; ".join(f"{cell.least_us(side):.0f}" for side in (APACHE, OURS)),
        "; ".join(f"{run.messages_a_request:.0f}" for run in sides),
        "; ".join(late) if cell.task == "send" else "",
    )
