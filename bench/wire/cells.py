"""What is measured, cell by cell; in each round both sides in turn, so that noise meets both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spark.process_tree import look_at

from wire.load_client import LoadClient
from wire.sides import Side


@dataclass(frozen=True)
class Effort:
    """How long, how often, and how much."""

    rounds: int
    warm_up_ms: int
    measured_ms: int
    messages: int  # of the topic that is pulled whole
    heap: str  # of Apache's broker


FULL = Effort(rounds=3, warm_up_ms=10_000, measured_ms=10_000, messages=1_000_000, heap="1g")
QUICK = Effort(rounds=1, warm_up_ms=1_500, measured_ms=2_000, messages=100_000, heap="512m")


class Run(NamedTuple):
    """One measurement."""

    messages_per_s: float
    messages: int
    broker_us: float  # CPU of the broker for a request
    messages_a_request: float
    p50_us: float
    p99_us: float
    refused: int


@dataclass
class Cell:
    """One way to ask a broker, and how often both sides could be asked that way."""

    name: str
    words: Sequence[object]  # what the load client is told, after its first word and the topic
    task: str
    topic: str
    runs: dict[str, list[Run]] = field(default_factory=dict)  # by side

    def measure(self, client: LoadClient, side: Side) -> None:
        """Measure a side once."""
        before = 0.0

        def at_begin() -> None:
            nonlocal before
            before = _cpu_s(side)

        words = (self.task, side.namesrv_addr, self.topic, *self.words)
        answer = client.do(*words, at_begin=at_begin)
        spent_s = _cpu_s(side) - before
        requests = max(answer["requests"], 1)
        run = Run(
            messages_per_s=answer["messages"] / answer["seconds"],
            messages=answer["messages"],
            broker_us=spent_s * 1e6 / requests,
            messages_a_request=answer["messages"] / requests,
            p50_us=answer.get("p50_us", 0),
            p99_us=answer.get("p99_us", 0),
            refused=answer.get("refused", 0),
        )
        self.runs.setdefault(side.name, []).append(run)

    def best(self, side: str) -> Run:
        """Return the run of a side with the most messages a second."""
        return max(self.runs[side])

    def least_us(self, side: str) -> float:
        """Return the least CPU for a request."""
        return min(run.broker_us for run in self.runs[side])


def send_cells(effort: Effort) -> list[Cell]:
    """Return the cells that send."""
    names = {
        (1, 1): "send, 1 thread",
        (16, 1): "send, 16 threads",
        (1, 100): "batches of 100, 1 thread",
        (16, 100): "batches of 100, 16 threads",
    }
    times = (effort.warm_up_ms, effort.measured_ms)
    return [
        Cell(name, (threads, batch, *times), "send", f"sent-{threads}-{batch}")
        for (threads, batch), name in names.items()
    ]


def pull_cells() -> tuple[list[Cell], Cell]:
    """Return the cells that pull a topic whole, all queues at once; the last one without limits."""
    cells = [Cell(f"pull all, {most} asked for", (most,), "pull", "filled") for most in (32, 1024)]
    return cells, Cell(
        "pull all, 1024 asked for, Apache's limits raised", (1024,), "pull", "filled"
    )


def measured(
    cells: Sequence[Cell], client: LoadClient, sides: Sequence[Side], rounds: int
) -> Iterator[tuple[Cell, Side]]:
    """Measure all cells, round by round; yield each as it is done."""
    for cell in cells:
        for _ in range(rounds):
            for side in sides:
                cell.measure(client, side)
                yield cell, side


def _cpu_s(side: Side) -> float:
    process = look_at(side.pid)
    assert process is not None, f"the broker of {side.name} has ended"
    return process.cpu_s
