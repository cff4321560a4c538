"""What the connector adds to the start of Spark's Python processes, each measured in a new one.

Spark's own imports are done before the clock starts. The planner then finds the source, makes the
schema and the plan and pickles it; the worker unpickles that and reads a first batch. All that the
connector imports is imported on the way.
Run as a program it is that process: `python cold_start.py planner <options as JSON>`, or
`python cold_start.py worker` with the pickled plan, in hex, on its standard input.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the measured process must not import more than Spark's would
    from spark.contest import Line
    from spark.workbench import Workbench

SECTION = "cold start"
REPEAT = 3


def lines(bench: Workbench) -> list[Line]:
    """Return a line for the planner and one for the worker: the least of a few starts."""
    from spark import messages
    from spark.contest import Line

    options = json.dumps({"path": str(bench.store), "topic": messages.TOPIC})
    planners = [_start("planner", options) for _ in range(REPEAT)]
    workers = [_start("worker", given=planners[0]["plan"]) for _ in range(REPEAT)]
    return [
        Line(
            SECTION,
            f"rocketpy {role}",
            {name: min(start[name] for start in starts) for name in ("wall_s", "python_s")},
        )
        for role, starts in (("planner", planners), ("worker", workers))
    ]


def _start(*arguments: str, given: str = "") -> dict[str, Any]:
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, input=given, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _plan(options: str) -> str:
    from pyspark_rocketpy import DefaultSource

    source = DefaultSource(json.loads(options))
    reader = source.reader(source.schema())
    return pickle.dumps((reader, reader.partitions()[0])).hex()


def _read(plan: str) -> str:
    reader, partition = pickle.loads(bytes.fromhex(plan))
    next(iter(reader.read(partition)))
    return ""


def _main(role: str, *options: str) -> None:
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401

    given = options[0] if options else sys.stdin.read()
    wall, cpu = time.perf_counter(), time.process_time()
    plan = {"planner": _plan, "worker": _read}[role](given)
    wall_s, python_s = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall_s": wall_s, "python_s": python_s, "plan": plan}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
