"""Reads, streams and sinks of all places in turns, beside Kafka's connector."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from spark import latency, messages, reading, streaming, writing
from spark.contest import Contender, Line, contest
from spark.latency import Pace
from spark.reading import SEVEN_COLUMNS
from spark.workbench import Workbench

from cluster.places import Place, write

FORM = "property as a column"


def reads(bench: Workbench, places: Sequence[Place]) -> list[Line]:
    """Return the lines of batch reads of the whole topic, 7 columns."""

    def ours(place: Place) -> Contender:
        def load() -> DataFrame:
            source = bench.spark.read.format("rocketpy").option(place.option, place.value)
            return source.option("topic", messages.TOPIC).option("columns", SEVEN_COLUMNS).load()

        return reading.reader(place.line, load, bench.rows, broker=place.broker)

    kafka = [reading.kafka(bench, name) for name in ("default", "tuned")]
    return _contest(bench, reading.READING, [*kafka, *map(ours, places)])


def streams(bench: Workbench, places: Sequence[Place]) -> list[Line]:
    """Return the lines of AvailableNow, from the first message to the last, in ten batches."""
    rows_per_batch = max(bench.rows // 10, 1)

    def ours(place: Place) -> Contender:
        def load() -> DataFrame:
            source = bench.spark.readStream.format("rocketpy").option(place.option, place.value)
            source = source.option("topic", messages.TOPIC).option("columns", SEVEN_COLUMNS)
            source = source.option("startingOffsets", "earliest")
            return source.option("maxRowsPerTrigger", rows_per_batch).load()

        return streaming.stream(bench, place.line, load, broker=place.broker)

    kafka = [streaming.kafka(bench, name, rows_per_batch) for name in ("default", "tuned")]
    return _contest(bench, streaming.SECTION, [*kafka, *map(ours, places)])


def sinks(bench: Workbench, places: Sequence[Place]) -> list[Line]:
    """Return the lines of writes from Parquet, each to a new topic."""
    kafka = [writing.kafka(bench, name) for name in ("default", "tuned")]
    folder = writing.folder(bench, "a folder", writing.PLAIN)
    clusters = [_sink(bench, place) for place in places if place.broker is not None]
    return _contest(bench, writing.SECTION, [*kafka, folder, *clusters])


def latencies(bench: Workbench, places: Sequence[Place], pace: Pace) -> list[Line]:
    """Return the lines of streams to which 1,000 messages a second come, one after the other."""
    lines = [latency.kafka(bench, name, pace) for name in ("default", "tuned")]
    for place in places:
        if place.broker is not None:
            topic = bench.new_name("latency")
            place.create_topic(topic)
            where = (place.option, place.value)
            lines.append(latency.ours(bench, place.line, where, topic, pace))
    return lines


def _sink(bench: Workbench, place: Place) -> Contender:
    topic = ""

    def prepare() -> None:
        nonlocal topic
        topic = bench.new_name("sink")
        place.create_topic(topic)

    return Contender(
        name=place.line,
        prepare=prepare,
        run=lambda: write(bench, place, topic, writing.PLAIN),
        count=lambda: place.messages_of(topic),
        expected=bench.rows,
        broker=place.broker,
    )


def _contest(bench: Workbench, section: str, contenders: Sequence[Contender]) -> list[Line]:
    return contest(section, contenders, rows=bench.rows, meter=bench.meter, rounds=bench.rounds)
