"""CPU-seconds and memory of processes and their children, from /proc: Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
KIB_PER_MIB = 1024
RESET_PEAK = "5"  # the word for clear_refs that makes VmHWM start anew


class Process(NamedTuple):
    """A process at one moment; `cpu_s` and those of its ended children are user and system."""

    pid: int
    parent: int
    started: int  # with the pid it names a process for good: pids are given again
    cpu_s: float
    ended_children_cpu_s: float


def look_at(pid: int) -> Process | None:
    """Return a process as it is now, None when it has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(") ")[2].split()  # from the third on: a name may hold blanks
    user, system, children_user, children_system = (
        int(ticks) / TICKS_PER_S for ticks in fields[11:15]
    )
    return Process(
        pid, int(fields[1]), int(fields[19]), user + system, children_user + children_system
    )


def descendants(pid: int) -> Iterator[Process]:
    """Yield the processes below one, at any depth."""
    children: dict[int, list[Process]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := look_at(int(entry.name))):
            children.setdefault(process.parent, []).append(process)
    waiting = children.get(pid, [])
    while waiting:
        found = waiting.pop()
        waiting.extend(children.get(found.pid, ()))
        yield found


class Family:
    """A process, and the CPU-seconds of all that it started, directly or not, ended ones included.

    The kernel adds an ended child to the parent that waits for it. Spark's JVM does, its Python
    daemon does not: so workers are remembered as they were last seen. One that lives and dies
    between two looks is missed; Spark keeps its workers for a minute.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._workers: dict[tuple[int, int], float] = {}

    def own_cpu_s(self) -> float:
        """Return the CPU-seconds of the process itself."""
        process = look_at(self.pid)
        return process.cpu_s if process else 0.0

    def children_cpu_s(self) -> float:
        """Return the CPU-seconds of all processes below it."""
        itself = look_at(self.pid)
        total = itself.ended_children_cpu_s if itself else 0.0
        for process in descendants(self.pid):
            spent = process.cpu_s + process.ended_children_cpu_s
            if process.parent == self.pid:
                total += spent
            else:
                self._workers[process.pid, process.started] = spent
        return total + sum(self._workers.values())

    def reset_peaks(self) -> None:
        """Let the peak memory of all children be what they hold now."""
        for process in descendants(self.pid):
            (PROC / str(process.pid) / "clear_refs").write_text(RESET_PEAK)

    def peak_mib(self) -> float:
        """Return the greatest peak of resident memory that one of the children had."""
        return max((_peak_mib(process.pid) for process in descendants(self.pid)), default=0.0)


def _peak_mib(pid: int) -> float:
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return 0.0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) / KIB_PER_MIB if peaks else 0.0
