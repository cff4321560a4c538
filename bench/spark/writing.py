"""The messages from Parquet into each sink: a new topic, or a new store, for each run."""

from __future__ import annotations

import shutil

import rocketpy
from spark import messages
from spark.contest import Contender, Line, contest
from spark.kafka.clients import SETTINGS
from spark.workbench import Workbench

SECTION = "sink"
MAP = ("body", "keys", "tags", "properties")
PLAIN = ("body", "keys", "tags", "region")  # a map costs Spark more than they do together


def lines(bench: Workbench) -> list[Line]:
    """Return the lines of all sinks."""
    contenders = [
        kafka(bench, "default"),
        kafka(bench, "tuned"),
        folder(bench, "property as a column", PLAIN),
        folder(bench, "properties as a map", MAP),
        _floor(bench, "property as a column", PLAIN),
        _floor(bench, "properties as a map", MAP),
    ]
    return contest(SECTION, contenders, rows=bench.rows, meter=bench.meter, rounds=bench.rounds)


def kafka(bench: Workbench, name: str) -> Contender:
    """Return the sink of Kafka's connector, as it comes or tuned."""
    given = bench.spark.read.parquet(str(bench.input))
    _, options = SETTINGS[name]
    topic = ""

    def prepare() -> None:
        nonlocal topic
        topic = bench.new_name("sink")
        bench.kafka.create_topic(topic, messages.QUEUES)

    return Contender(
        name=f"Kafka {name}",
        prepare=prepare,
        run=lambda: bench.kafka.write(given, topic, options),
        count=lambda: bench.kafka.read(topic, {}).count(),
        expected=bench.rows,
        broker=bench.broker_family,
        clean=lambda: bench.kafka.delete_topic(topic),
    )


def folder(bench: Workbench, name: str, columns: tuple[str, ...]) -> Contender:
    """Return our sink to the folder of a store."""
    given = bench.spark.read.parquet(str(bench.input)).select(*columns)
    path = bench.folder / bench.new_name("sink")

    def prepare() -> None:
        shutil.rmtree(path, ignore_errors=True)
        with rocketpy.open(path) as store:
            store.create_topic(messages.TOPIC, messages.QUEUES)

    def run() -> None:
        writer = given.write.format("rocketpy").mode("append")
        if columns == PLAIN:
            writer = writer.option("propertyColumns", "region")
        writer.option("path", str(path)).option("topic", messages.TOPIC).save()

    def count() -> int:
        with rocketpy.open(path, read_only=True) as store:
            return sum(end - start for start, end in store.queues(messages.TOPIC).values())

    return Contender(
        name=f"rocketpy, {name}",
        prepare=prepare,
        run=run,
        count=count,
        expected=bench.rows,
    )


def _floor(bench: Workbench, name: str, columns: tuple[str, ...]) -> Contender:
    given = bench.spark.read.parquet(str(bench.input)).select(*columns)
    return Contender(
        name=f"floor, {name}",
        run=given.write.format("floor").mode("append").options(**bench.floor()).save,
        count=lambda: bench.rows,  # it keeps nothing that could be counted
        expected=bench.rows,
    )
