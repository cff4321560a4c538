"""Both clients in one run, on one Apache broker: `python bench/run.py client`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from measure import Figure
from rich.console import Console
from spark.process_tree import look_at
from wire.cells import FULL, QUICK, Effort
from wire.load_client import LoadClient, java_client
from wire.sides import Side, running_apache

JAVA, PYTHON = "Java", "Python"
PROGRAM = Path(__file__).with_name("python_load.py")
PULLED = "pulled-by-clients"
COROUTINES = 1_000


class Run(NamedTuple):
    """One measurement."""

    messages_per_s: float
    client_us: float  # CPU of the client's process for a message
    broker_us: float
    p50_ms: float
    p99_ms: float
    refused: int


@dataclass
class Cell:
    """One way to use a client. What is told to which client, and what came of it."""

    name: str
    words: Mapping[str, Sequence[object]]  # by client: the task, and what follows the topic
    topic: str
    aim: str = ""
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def measure(self, name: str, client: LoadClient, broker: Side) -> Run:
        """Measure one client once."""
        before = (0.0, 0.0)

        def at_begin() -> None:
            nonlocal before
            before = _cpu_s(client.pid), _cpu_s(broker.pid)

        task, *others = self.words[name]
        answer = client.do(task, broker.namesrv_addr, self.topic, *others, at_begin=at_begin)
        spent = _cpu_s(client.pid) - before[0], _cpu_s(broker.pid) - before[1]
        client_us, broker_us = (each * 1e6 / max(answer["messages"], 1) for each in spent)
        run = Run(
            messages_per_s=answer["messages"] / answer["seconds"],
            client_us=client_us,
            broker_us=broker_us,
            p50_ms=answer.get("p50_us", 0) / 1000,
            p99_ms=answer.get("p99_us", 0) / 1000,
            refused=answer.get("refused", 0),
        )
        self.runs.setdefault(name, []).append(run)
        return run

    def best(self, name: str) -> Run | None:
        """Return the run of a client with the most messages a second."""
        return max(self.runs.get(name, ()), default=None)


def cells(effort: Effort) -> list[Cell]:
    """Return all cells; those of asyncio have no counterpart in Java."""
    times = (effort.warm_up_ms, effort.measured_ms)

    def both(*words: object) -> dict[str, Sequence[object]]:
        return {JAVA: words, PYTHON: words}

    def asyncio_on(loop: str) -> dict[str, Sequence[object]]:
        return {PYTHON: ("coroutines", COROUTINES, loop, *times)}

    return [
        Cell("send, 1 thread", both("send", 1, 1, *times), "sent-1-1", ">= 0.7"),
        Cell("batches of 100, 1 thread", both("send", 1, 100, *times), "sent-1-100", ">= 0.7"),
        Cell("pull all, 32 asked for", both("pull", 32), PULLED, ">= 1"),
        Cell("pull all, 1024 asked for", both("pull", 1024), PULLED, ">= 1"),
        Cell(f"{COROUTINES:,} coroutines, asyncio", asyncio_on("asyncio"), "sent-1-1", ">= 8000"),
        Cell(f"{COROUTINES:,} coroutines, uvloop", asyncio_on("uvloop"), "sent-1-1", ">= 8000"),
    ]


def measure(console: Console, *, quick: bool) -> list[Figure]:
    """Measure, show the table, and return the aims. Quick figures only show that all works."""
    # Ended by a signal, too, the bench has to stop the broker that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    effort = QUICK if quick else FULL
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-client-"))
    measured = cells(effort)
    try:
        with (
            running_apache(folder / "apache", heap=effort.heap) as broker,
            java_client(folder) as java,
            LoadClient([sys.executable, str(PROGRAM)], log=folder / "python.log") as python,
        ):
            clients = {JAVA: java, PYTHON: python}
            java.do("fill", broker.namesrv_addr, PULLED, effort.messages)
            java.do("send", broker.namesrv_addr, "sent-1-1", 1, 1, 500, 500)  # makes the topics
            java.do("send", broker.namesrv_addr, "sent-1-100", 1, 100, 500, 500)
            for cell in measured:
                for _ in range(effort.rounds):
                    _round(cell, clients, broker, console)
    finally:
        shutil.rmtree(folder)
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    console.print(_markdown(measured), markup=False, soft_wrap=True)
    return [*_figures(measured)]


def _round(cell: Cell, clients: Mapping[str, LoadClient], broker: Side, console: Console) -> None:
    for name in cell.words:
        run = cell.measure(name, clients[name], broker)
        console.print(f"{cell.name}: {name} {run.messages_per_s:,.0f} messages/s")


def _figures(measured: Sequence[Cell]) -> Iterator[Figure]:
    for cell in measured:
        java, python = cell.best(JAVA), cell.best(PYTHON)
        assert python is not None
        if java is None:
            yield Figure(cell.name, python.messages_per_s, "messages/s", cell.aim)
        else:
            times = python.messages_per_s / java.messages_per_s
            yield Figure(f"{cell.name}, messages/s of Java", times, "times", cell.aim)


def _markdown(measured: Sequence[Cell]) -> str:
    headings = (
        *("128 B", "messages/s Java", "Python", "times", "aim"),
        *("client's CPU a message, µs", "broker's", "p50 / p99, ms"),
    )
    lines = [headings, ("---",) * len(headings), *map(_line, measured)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(cell: Cell) -> tuple[str, ...]:
    java, python = cell.best(JAVA), cell.best(PYTHON)
    assert python is not None
    both = [run for run in (java, python) if run is not None]
    refused = sum(run.refused for runs in cell.runs.values() for run in runs)
    return (
        cell.name + (f" ({refused} sends failed)" if refused else ""),
        f"{java.messages_per_s:,.0f}" if java else "",
        f"{python.messages_per_s:,.0f}",
        f"{python.messages_per_s / java.messages_per_s:.2f}" if java else "",
        cell.aim,
        "; ".join(f"{run.client_us:.1f}" for run in both),
        "; ".join(f"{run.broker_us:.1f}" for run in both),
        "; ".join(f"{run.p50_ms:.2f} / {run.p99_ms:.2f}" for run in both if run.p50_ms),
    )


def _cpu_s(pid: int) -> float:
    process = look_at(pid)
    assert process is not None, "a process of the bench has ended"
    return process.cpu_s
