"""The aims, as ratios of lines of one run: they mean the same on any machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from measure import Figure

from spark import backfilling, cold_start, first_row, latency, memory, reading, streaming, writing
from spark.contest import Line


def figures(lines: Sequence[Line]) -> Iterator[Figure]:
    """Yield an aim per figure; where a line is missing the value is NaN."""
    found = {(line.section, line.name): line.figures for line in lines}
    sections = {line.section for line in lines}

    def value(section: str, name: str, figure: str) -> float:
        return found.get((section, name), {}).get(figure, math.nan)

    def ratio(section: str, one: str, other: str, figure: str) -> float:
        return value(section, one, figure) / value(section, other, figure)

    if reading.READING in sections:
        seven, rate = "rocketpy 7 columns", "rows_per_s"
        for other, aim in (("Kafka default", ">= 2"), ("Kafka tuned", ">= 1")):
            against = ratio(reading.READING, seven, other, rate)
            yield Figure(f"read, rows/s of {other}", against, "times", aim)
            cpu = ratio(reading.READING, seven, other, "cpu_s")
            yield Figure(f"read, CPU of {other}", cpu, "times")
        body = ratio(reading.READING, "rocketpy body", seven, rate)
        yield Figure("read body alone, rows/s of 7 columns", body, "times", ">= 2")
        tags = ratio(reading.READING, "rocketpy tags of 1 %", seven, "cpu_s")
        yield Figure("read tags of 1 %, CPU of all", tags, "times", "<= 0.125")
    if reading.COUNTING in sections:
        queues = ratio(reading.COUNTING, "rocketpy queues", "rocketpy messages", "cpu_s")
        yield Figure("count of queues, CPU of messages", queues, "times", "<= 0.25")
    if streaming.SECTION in sections:
        kafka = ("rocketpy 7 columns", "Kafka default")
        stream = ratio(streaming.SECTION, *kafka, "rows_per_s")
        yield Figure("AvailableNow, rows/s of Kafka default", stream, "times", ">= 1.2")
        cpu = ratio(streaming.SECTION, *kafka, "cpu_s")
        yield Figure("AvailableNow, CPU of Kafka default", cpu, "times")
    if writing.SECTION in sections:
        for form in ("property as a column", "properties as a map"):
            sink = ratio(writing.SECTION, f"rocketpy, {form}", "Kafka default", "cpu_s")
            yield Figure(f"sink, {form}, CPU of Kafka default", sink, "times", "<= 1")
    if backfilling.SECTION in sections:
        for other in ("Kafka default", "Kafka tuned"):
            for one in ("rocketpy, default columns", "rocketpy, 7 columns"):
                cpu = ratio(backfilling.SECTION, one, other, "cpu_s")
                yield Figure(f"into Delta, {one[10:]}, CPU of {other}", cpu, "times", "<= 1")
    if latency.SECTION in sections:
        for figure in ("p50", "p99"):
            late = ratio(latency.SECTION, "rocketpy", "Kafka tuned", f"{figure}_s")
            yield Figure(f"latency, {figure} of Kafka tuned", late, "times", "<= 1")
    if first_row.SECTION in sections:
        kafka = ("rocketpy 7 columns", "Kafka default")
        first = ratio(first_row.SECTION, *kafka, "wall_s")
        yield Figure("first row in a new process, time of Kafka", first, "times", "<= 1")
    for line in lines:
        if line.section == cold_start.SECTION:
            yield Figure(f"cold start, {line.name}", line.figures["wall_s"], "s", "< 1")
        if line.section == memory.SECTION:
            yield Figure(f"peak memory, {line.name}", line.figures["peak_mib"], "MiB", "< 300")
