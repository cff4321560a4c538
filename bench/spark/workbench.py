"""What all sections work on: a Spark, a Kafka, and the messages laid down for each of them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from rocketpy.connector.session import DELTA_SETTINGS
from rocketpy.connector.spark_home import quick_home
from spark import messages
from spark.contest import Meter, Rounds
from spark.floor import FloorSource
from spark.kafka.broker import KafkaBroker, running_broker
from spark.kafka.clients import TUNED_WRITE, KafkaClients
from spark.kafka.jars import connector_jars
from spark.process_tree import Family

BENCH = Path(__file__).resolve().parents[1]
_numbers = count()


@dataclass(frozen=True)
class Workbench:
    """The messages are in `input` (to be written), `archive` (Parquet), `store` and `kafka`."""

    spark: SparkSession
    kafka: KafkaClients
    broker: KafkaBroker
    broker_family: Family  # Kafka's
    meter: Meter
    folder: Path
    rows: int
    rounds: Rounds

    @property
    def input(self) -> Path:
        """Parquet with body, tags, keys, properties and Kafka's headers."""
        return self.folder / "input"

    @property
    def archive(self) -> Path:
        """Parquet with the columns that are read everywhere."""
        return self.folder / "archive"

    @property
    def store(self) -> Path:
        """The rocketpy store."""
        return self.folder / "store"

    def new_name(self, kind: str) -> str:
        """Return a name for a folder or a topic that was not given before."""
        return f"{kind}-{next(_numbers)}"

    def rocketpy(self, options: Mapping[str, object], *, topic: str = messages.TOPIC) -> DataFrame:
        """Return a batch read of the store."""
        reader = self.spark.read.format("rocketpy").option("path", str(self.store))
        return reader.option("topic", topic).options(**options).load()

    def floor(self) -> dict[str, str]:
        """Return the options of the floor that gives as many rows as there are messages."""
        return {
            "batch": str(self.folder / "batch.arrow"),
            "rows": str(self.rows),
            "partitions": str(messages.QUEUES),
        }


@contextmanager
def workbench(rows: int, rounds: Rounds, *, delta: bool = False) -> Iterator[Workbench]:
    """Set everything up; take it down when the block ends, however it ends."""
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-bench-"))
    try:
        with (
            running_broker(folder / "kafka", partitions=messages.QUEUES) as broker,
            spark_session(folder, delta=delta) as spark,
        ):
            jvm_pid = spark._jvm.java.lang.ProcessHandle.current().pid()
            bench = Workbench(
                spark=spark,
                kafka=KafkaClients(spark, broker.address),
                broker=broker,
                broker_family=Family(broker.pid),
                meter=Meter(Family(jvm_pid)),
                folder=folder,
                rows=rows,
                rounds=rounds,
            )
            _lay_down(bench)
            yield bench
    finally:
        shutil.rmtree(folder)


def _lay_down(bench: Workbench) -> None:
    messages.write_input(bench.input, bench.rows)
    messages.fill_store(bench.store, messages.TOPIC, bench.rows)
    columns = bench.rocketpy({"columns": ",".join(messages.COLUMNS)})
    schema = to_arrow_schema(columns.schema, timezone="UTC")
    messages.write_archive(bench.store, bench.archive, bench.folder / "batch.arrow", schema)
    bench.kafka.create_topic(messages.TOPIC, messages.QUEUES)
    given = bench.spark.read.parquet(str(bench.input))
    bench.kafka.write(given, messages.TOPIC, TUNED_WRITE)


@contextmanager
def spark_session(folder: Path, *, delta: bool) -> Iterator[SparkSession]:
    """Start a Spark as all sections use it; stop it when the block ends."""
    # Workers start with the interpreter and the path of the bench: they import its floor.
    path = [str(BENCH), str(BENCH.parent / "src"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("rocketpy bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "spark"))
        .config("spark.jars", ",".join(map(str, connector_jars())))
    )
    if delta:
        for name, value in DELTA_SETTINGS.items():
            builder = builder.config(name, value)
        builder = configure_spark_with_delta_pip(builder)
    with quick_home({"spark.master": "local[2]"}):  # as local_spark() starts it
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # what fails is told in the table
    session.dataSource.register(FloorSource)
    try:
        yield session
    finally:
        session.stop()
