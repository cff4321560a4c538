"""Topics in SQL: tables and temporary views, both ways; with Delta's catalog and not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.connector.test_discovery import run

import rocketpy

DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.fixture
def orders(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", queues=2)
    for number in range(4):
        store.send("orders", f"{number}", tags="paid" if number % 2 else "new")
    return store


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with Delta's catalog, whose tables and views are gone at the end."""
    session = spark.newSession()
    assert session.conf.get("spark.sql.catalog.spark_catalog") == DELTA_CATALOG
    yield session
    session.sql("DROP TABLE IF EXISTS orders")


@pytest.fixture
def own_catalog(session: SparkSession) -> SparkSession:
    """The same, told by SQL to use Spark's own catalog."""
    session.sql("SET spark.sql.catalog.spark_catalog = builtin")
    return session


def create_table(session: SparkSession, store: rocketpy.Store, columns: str = "") -> None:
    session.sql(
        f"CREATE TABLE orders {columns} USING rocketpy "
        f"OPTIONS (path '{store.path}', topic 'orders')"
    )


def count(session: SparkSession, source: str) -> int:
    (row,) = session.sql(f"SELECT count(*) AS n FROM {source}").collect()
    return int(row["n"])


def test_a_table_of_the_catalog_is_always_up_to_date(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    create_table(own_catalog, orders)
    assert count(own_catalog, "orders") == 4
    orders.send("orders", "4")
    assert count(own_catalog, "orders") == 5


def test_a_query_gives_a_table_further_options(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    create_table(own_catalog, orders)
    assert count(own_catalog, "orders WITH (tags = 'paid')") == 2
    with pytest.raises(AnalysisException, match="did you mean 'tags'"):
        count(own_catalog, "orders WITH (tag = 'paid')")


def test_a_view_of_a_table_is_up_to_date_as_well(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    create_table(own_catalog, orders)
    own_catalog.sql("CREATE TEMP VIEW bodies AS SELECT string(body) AS body FROM orders")
    assert count(own_catalog, "bodies") == 4
    orders.send("orders", "4")
    assert count(own_catalog, "bodies WHERE body = '4'") == 1


def test_a_table_is_read_as_a_stream(
    own_catalog: SparkSession, orders: rocketpy.Store, tmp_path: Path
) -> None:
    own_catalog.sql(
        "CREATE TABLE orders USING rocketpy "
        f"OPTIONS (path '{orders.path}', topic 'orders', consumerGroup 'billing')"
    )
    query = (
        own_catalog.readStream.table("orders")
        .writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "table"))
    )
    query.awaitTermination()
    assert own_catalog.read.format("delta").load(str(tmp_path / "table")).count() == 4
    assert sum(orders.committed("billing", "orders").values()) == 4


def test_a_wrong_option_is_refused_when_the_table_is_made(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    with pytest.raises(AnalysisException, match="did you mean 'topic'"):
        own_catalog.sql(
            f"CREATE TABLE orders USING rocketpy OPTIONS (path '{orders.path}', topics 'orders')"
        )


def test_a_table_that_is_dropped_leaves_its_store_alone(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    create_table(own_catalog, orders)
    own_catalog.sql("DROP TABLE orders")
    assert orders.read("orders").read_all().num_rows == 4


def test_a_table_with_a_list_of_columns_says_what_to_do_when_it_is_read(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    create_table(own_catalog, orders, "(topic STRING, body BINARY)")
    with pytest.raises(AnalysisException, match="make it without the list, or make a temporary vi"):
        count(own_catalog, "orders")


def test_a_table_says_how_to_write_instead(
    own_catalog: SparkSession, orders: rocketpy.Store
) -> None:
    create_table(own_catalog, orders, "(body STRING)")
    with pytest.raises(AnalysisException, match="INSERT INTO a temporary view"):
        own_catalog.sql("INSERT INTO orders VALUES ('4')")
    assert orders.read("orders").read_all().num_rows == 4


def test_with_deltas_catalog_spark_reads_no_table_of_a_python_source(
    session: SparkSession, orders: rocketpy.Store
) -> None:
    """If this fails Spark has learnt it: take the detour out of docs/guides/sql.md."""
    create_table(session, orders)
    with pytest.raises(AnalysisException, match="rocketpy is not a valid Spark SQL Data Source"):
        count(session, "orders")


def test_a_view_that_is_made_again_sees_what_is_new(
    session: SparkSession, orders: rocketpy.Store
) -> None:
    make = (
        "CREATE OR REPLACE TEMP VIEW latest USING rocketpy "
        f"OPTIONS (path '{orders.path}', topic 'orders')"
    )
    session.sql(make)
    assert count(session, "latest") == 4
    orders.send("orders", "4")
    assert count(session, "latest") == 4  # one read plan for a view: what Spark does
    session.sql(make)
    assert count(session, "latest") == 5


def test_a_view_with_a_list_of_columns_is_written_to(
    session: SparkSession, orders: rocketpy.Store
) -> None:
    session.sql(
        "CREATE TEMP VIEW bills (body STRING, keys STRING) USING rocketpy "
        f"OPTIONS (path '{orders.path}', topic 'bills')"
    )
    session.sql("INSERT INTO bills VALUES ('1 euro', 'o-1'), ('2 euros', 'o-2')")
    session.sql("INSERT INTO bills (body) SELECT '3 euros'")
    stored = orders.read("bills", columns="body, keys").read_all().to_pylist()
    assert sorted(stored, key=lambda row: str(row["body"])) == [
        {"body": b"1 euro", "keys": "o-1"},
        {"body": b"2 euros", "keys": "o-2"},
        {"body": b"3 euros", "keys": None},
    ]


@pytest.mark.further
@pytest.mark.spark
def test_a_table_is_read_in_a_session_that_knows_no_delta(
    orders: rocketpy.Store, tmp_path: Path
) -> None:
    program = """
import os
os.chdir(sys.argv[2])
spark.sql(f"CREATE TABLE t USING rocketpy OPTIONS (path '{sys.argv[1]}', topic 'orders')")
print(spark.sql("SELECT string(body) AS body FROM t WHERE tags = 'new' ORDER BY body").collect())
"""
    source = Path(rocketpy.__file__).parents[1]
    shown = run(program, orders.path, tmp_path, path=[source])
    assert shown == "[Row(body='0'), Row(body='2')]"
