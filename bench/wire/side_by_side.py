"""Both brokers in one run: sends, batches, pulls, the broker's CPU and memory, and its start."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Figure
from rich.console import Console

from wire import report, start_up
from wire.cells import FULL, QUICK, Cell, Effort, measured, pull_cells, send_cells
from wire.load_client import LoadClient, java_client
from wire.sides import APACHE, OURS, Side, running_floor, running_sides

KIB_PER_MIB = 1024


def measure(console: Console, *, quick: bool) -> list[Figure]:
    """Measure, show the table, and return the aims. Quick figures only show that all works."""
    # Ended by a signal, too, the bench has to stop the brokers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    effort = QUICK if quick else FULL
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-wire-"))
    try:
        with running_sides(folder, heap=effort.heap) as sides, java_client(folder) as client:
            pulled = _pulled(console, client, sides, effort)
            memory = [(side, _memory_mib(side.pid)) for side in sides]
            with running_floor(folder) as floor:
                cells = [*_sent(console, client, [*sides, floor], effort), *pulled]
    finally:
        shutil.rmtree(folder)
    figures = [*report.figures(cells), *_of_memory(memory, effort), *_of_starts(sides, effort)]
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    console.print(report.markdown(cells), markup=False, soft_wrap=True)
    return figures


def _sent(
    console: Console, client: LoadClient, sides: Sequence[Side], effort: Effort
) -> list[Cell]:
    cells = send_cells(effort)
    for cell, side in measured(cells, client, sides, effort.rounds):
        _tell(console, cell, side)
    return cells


def _pulled(
    console: Console, client: LoadClient, sides: Sequence[Side], effort: Effort
) -> list[Cell]:
    cells, unlimited = pull_cells()
    for side in sides:
        client.do("fill", side.namesrv_addr, unlimited.topic, effort.messages)
        client.do("pull", side.namesrv_addr, unlimited.topic, 32)  # warms both ends up
    _pull(cells, console, client, sides, effort)
    for side in sides:
        if side.name == APACHE:
            side.raise_limits()
    _pull([unlimited], console, client, sides, effort)
    return [*cells, unlimited]


def _pull(
    cells: Sequence[Cell],
    console: Console,
    client: LoadClient,
    sides: Sequence[Side],
    effort: Effort,
) -> None:
    for cell, side in measured(cells, client, sides, effort.rounds):
        _tell(console, cell, side)
        found = cell.runs[side.name][-1].messages
        assert found == effort.messages, f"{side.name} gave {found:,} messages"


def _tell(console: Console, cell: Cell, side: Side) -> None:
    rate = cell.runs[side.name][-1].messages_per_s
    console.print(f"{cell.name}: {side.name} {rate:,.0f} messages/s")


def _of_memory(memory: Sequence[tuple[Side, dict[str, float]]], effort: Effort) -> list[Figure]:
    title = f"memory of the broker with {effort.messages:,} messages, all pulled"
    return [
        Figure(
            f"{title}, {side.name}: {name}",
            mib,
            "MiB",
            report.MEMORY_AIM if (side.name, name) == (OURS, "VmRSS") else "",
        )
        for side, found in memory
        for name, mib in found.items()
    ]


def _of_starts(sides: Sequence[Side], effort: Effort) -> list[Figure]:
    whole_s, own_s = start_up.seconds(effort.rounds)
    (ours,) = (side for side in sides if side.name == OURS)
    return [
        Figure("local_broker() serves, imports included", whole_s, "s", report.READY_AIM),
        Figure("local_broker() serves, without imports", own_s, "s"),
        Figure("broker as a process serves", ours.ready_s, "s"),
    ]


def _memory_mib(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    wanted = ("VmRSS", "RssAnon", "RssFile")
    return {name: int(values[name].split()[0]) / KIB_PER_MIB for name in wanted}
