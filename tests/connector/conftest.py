"""A real Spark, one for all tests here: it takes seconds to start."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from delta import configure_spark_with_delta_pip
from pyspark.sql import DataFrame, SparkSession
from tests.connector.streams import Stream

import rocketpy

GOLDEN = Path(__file__).parents[1] / "golden"

Load = Callable[..., DataFrame]
MakeStream = Callable[..., Stream]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and "spark" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.spark)
            # py4j leaves its sockets to the end; pyspark itself uses what pandas gives up.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Without it Spark starts its workers with whatever `python3` is first on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )
    session = configure_spark_with_delta_pip(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def apache_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store that Apache's broker wrote."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(GOLDEN / "apache-rocketmq-store.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return str(folder / "store")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    """An empty store; every broken invariant at the end fails the test."""
    with rocketpy.open(tmp_path / "store") as opened:
        yield opened
        assert list(opened.verify()) == []


@pytest.fixture
def load(spark: SparkSession, store: rocketpy.Store) -> Load:
    """Read the store as a batch: load(topic="orders", tags="paid")."""

    def load(**options: object) -> DataFrame:
        reader = spark.read.format("rocketpy").option("path", str(store.path))
        return reader.options(**{name: str(value) for name, value in options.items()}).load()

    return load


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[MakeStream]:
    """Make a stream on the test's store: stream(topic="orders"); all are stopped at the end."""
    yield lambda **options: Stream(spark, tmp_path / "store", options)
    for query in spark.streams.active:
        query.stop()
