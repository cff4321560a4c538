"""From a new Spark to the first row, each in a process of its own: Kafka's connector and ours.

Run as a program, `python -m spark.first_row <format> <options as JSON>`, it is that process.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark import messages
from spark.contest import Line
from spark.process_tree import Family
from spark.reading import SEVEN_COLUMNS
from spark.workbench import BENCH, Workbench, spark_session

SECTION = "first row"
REPEAT = 3


def lines(bench: Workbench) -> list[Line]:
    """Return a line for each connector: the least of a few starts, by turns."""
    kafka = bench.kafka.source_options(messages.TOPIC, {})
    ours = {"path": str(bench.store), "topic": messages.TOPIC, "columns": SEVEN_COLUMNS}
    sources = {"Kafka default": ("kafka", kafka), "rocketpy 7 columns": ("rocketpy", ours)}
    starts: dict[str, list[Mapping[str, float]]] = {name: [] for name in sources}
    for _ in range(REPEAT):
        for name, (format_, options) in sources.items():
            starts[name].append(_start(format_, options))
    return [
        Line(SECTION, name, {figure: min(each[figure] for each in found) for figure in found[0]})
        for name, found in starts.items()
    ]


def _start(format_: str, options: Mapping[str, str]) -> Mapping[str, float]:
    command = [sys.executable, "-m", "spark.first_row", format_, json.dumps(options)]
    done = subprocess.run(command, cwd=BENCH, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _main(format_: str, options: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    try:
        with spark_session(folder, delta=False) as spark:
            jvm = Family(spark._jvm.java.lang.ProcessHandle.current().pid())
            jvm_s, python_s = jvm.own_cpu_s(), jvm.children_cpu_s()
            start = time.perf_counter()
            rows = spark.read.format(format_).options(**json.loads(options)).load().head(1)
            wall_s = time.perf_counter() - start
            assert len(rows) == 1
            figures = {
                "wall_s": wall_s,
                "jvm_s": jvm.own_cpu_s() - jvm_s,
                "python_s": jvm.children_cpu_s() - python_s,
            }
        print(json.dumps(figures))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    _main(*sys.argv[1:])
