"""A topic of a store, read by a real Spark that was told nothing but the format's name."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

GOLDEN = Path(__file__).parents[1] / "golden"
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # py4j leaves its sockets to the end
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # Without it Spark starts its workers with whatever `python3` is first on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(GOLDEN / "apache-rocketmq-store.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return str(folder / "store")


def test_spark_finds_the_format_by_itself_and_reads_what_apache_wrote(
    spark: SparkSession, store: str
) -> None:
    expected = [
        (message["queueId"], message["queueOffset"], message.get("tags"), message["properties"])
        for message in map(json.loads, (GOLDEN / "messages.jsonl").read_text().splitlines())
        if message["topic"] == "lab_tags"
    ]
    frame = spark.read.format("rocketpy").option("path", store).option("topic", "lab_tags").load()
    rows = frame.select("queue_id", "queue_offset", "tags", "properties").collect()
    assert sorted(map(tuple, rows), key=lambda row: row[:2]) == sorted(
        expected, key=lambda row: row[:2]
    )


def test_a_schema_of_the_users_reads_only_its_columns(spark: SparkSession, store: str) -> None:
    wanted = StructType().add("queue_offset", LongType(), nullable=False)
    reader = spark.read.format("rocketpy").schema(wanted).option("path", store)
    frame = reader.option("topic", "lab_tags").load()
    assert frame.columns == ["queue_offset"]
    assert frame.count() == 10


def test_an_unknown_option_is_refused_with_the_nearest_name(
    spark: SparkSession, store: str
) -> None:
    reader = spark.read.format("rocketpy").option("path", store).option("topics", "lab_tags")
    with pytest.raises(Exception, match="did you mean 'topic'"):
        reader.load().count()
