"""Several ways to do one thing, run in turns; what each of them costs in time and CPU.

In each round every contender runs once, so that what else happens on the machine meets all alike.
The first run of each is checked: it has to move as many rows as the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spark.process_tree import Family

# Collectors, compilers and ending workers come to rest, and are charged to whom they worked for.
PAUSE_S = 0.5


class Spent(NamedTuple):
    """The cost of one run."""

    wall_s: float
    jvm_s: float
    python_s: float
    broker_s: float

    @property
    def cpu_s(self) -> float:
        """CPU-seconds of all processes."""
        return self.jvm_s + self.python_s + self.broker_s


@dataclass(frozen=True)
class Line:
    """What became of one contender: figures by name, or the reason why there are none."""

    section: str
    name: str
    figures: Mapping[str, float] = field(default_factory=dict)
    missing: str = ""


def nothing() -> None:
    """Do nothing: the preparation or clean-up of a contender that needs none."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way to do it. Only `run` is timed.

    `count` says how many rows the last run moved; `expected` of them are right. `broker` is the
    process whose CPU counts, too.
    """

    name: str
    run: Callable[[], object]
    count: Callable[[], int]
    expected: int
    broker: Family | None = None
    prepare: Callable[[], None] = nothing
    clean: Callable[[], None] = nothing

    @property
    def is_ours(self) -> bool:
        """Whether it may fail: what rocketpy can't do yet is told, all else has to work."""
        return self.name.startswith("rocketpy")


@dataclass(frozen=True)
class Meter:
    """Measures work that happens in Spark's JVM, its Python workers and a broker."""

    jvm: Family

    def measure(self, contender: Contender) -> Spent:
        """Run a contender once."""
        contender.prepare()
        time.sleep(PAUSE_S)
        before = self._cpu_s(contender.broker)
        start = time.perf_counter()
        contender.run()
        wall_s = time.perf_counter() - start
        time.sleep(PAUSE_S)
        after = self._cpu_s(contender.broker)
        contender.clean()
        return Spent(wall_s, *(end - start for start, end in zip(before, after, strict=True)))

    def _cpu_s(self, broker: Family | None) -> tuple[float, float, float]:
        broker_s = broker.own_cpu_s() if broker is not None else 0.0
        return self.jvm.own_cpu_s(), self.jvm.children_cpu_s(), broker_s


@dataclass(frozen=True)
class Rounds:
    """How often everything is run: for the JIT first, then for the figures."""

    warm_up: int
    measured: int


def contest(
    section: str, contenders: Sequence[Contender], *, rows: int, meter: Meter, rounds: Rounds
) -> list[Line]:
    """Return a line per contender: the least wall time, and the CPU of the run with the least."""
    failures = {
        contender.name: failure for contender in contenders if (failure := _trial(contender))
    }
    able = [contender for contender in contenders if contender.name not in failures]
    spent: dict[str, list[Spent]] = {contender.name: [] for contender in able}
    for _ in range(rounds.warm_up + rounds.measured):
        for contender in able:
            spent[contender.name].append(meter.measure(contender))
    return [
        Line(section, contender.name, missing=failures[contender.name])
        if contender.name in failures
        else Line(section, contender.name, _figures(spent[contender.name][rounds.warm_up :], rows))
        for contender in contenders
    ]


def first_line(error: Exception) -> str:
    """Return the line of an error that says most: Spark puts Python's tracebacks into its own."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if line.startswith(("rocketpy.", "pyspark.errors.")):
            return line.partition(": ")[2]
    return lines[0] if lines else type(error).__name__


def _trial(contender: Contender) -> str:
    """Run and check a contender; return why it can't take part, or nothing."""
    try:
        contender.prepare()
        contender.run()
        found = contender.count()
        contender.clean()
    except Exception as error:
        if not contender.is_ours:
            raise
        return first_line(error)
    if found != contender.expected:
        return f"{found:,} rows instead of {contender.expected:,}"
    return ""


def _figures(runs: Sequence[Spent], rows: int) -> dict[str, float]:
    wall_s = min(run.wall_s for run in runs)
    cheapest = min(runs, key=lambda run: run.cpu_s)
    return {
        "wall_s": wall_s,
        "rows_per_s": rows / wall_s,
        "cpu_s": cheapest.cpu_s,
        "jvm_s": cheapest.jvm_s,
        "python_s": cheapest.python_s,
        "broker_s": cheapest.broker_s,
    }
