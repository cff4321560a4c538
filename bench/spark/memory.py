"""The peak memory of the Python worker that reads a queue whole, for a small and a large queue.

It is the kernel's count of resident pages (VmHWM), so pages of mapped files are in it as well.
"""

from __future__ import annotations

from spark import messages
from spark.contest import Line
from spark.reading import SEVEN_COLUMNS
from spark.workbench import Workbench

SECTION = "peak memory"
SMALL_EACH = 100


def lines(bench: Workbench) -> list[Line]:
    """Return a line per size of a queue."""
    return [
        _line(bench, "small", max(bench.rows // SMALL_EACH, 1)),
        _line(bench, "large", bench.rows),
    ]


def _line(bench: Workbench, topic: str, rows: int) -> Line:
    messages.fill_store(bench.store, topic, rows, queues=1)
    frame = bench.rocketpy({"columns": SEVEN_COLUMNS}, topic=topic)
    bench.meter.jvm.reset_peaks()
    frame.write.format("noop").mode("overwrite").save()
    peak_mib = bench.meter.jvm.peak_mib()
    return Line(SECTION, f"rocketpy queue of {rows:,}", {"peak_mib": peak_mib})
