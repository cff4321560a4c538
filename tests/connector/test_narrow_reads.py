"""`rocketpy.read` and `rocketpy.count`: what a query needs is said by options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import rocketpy


@pytest.fixture
def filled(store: rocketpy.Store) -> str:
    store.create_topic("orders", queues=2)
    store.create_topic("bills", queues=1)
    store.append("orders", pa.table({"body": [b"a"] * 10, "tags": ["paid", "open"] * 5}))
    store.send("bills", b"b")
    return str(store.path)


def test_columns_are_a_list_or_a_text(spark: SparkSession, filled: str) -> None:
    for columns in (["body", "tags"], ("body", "tags"), "body,tags"):
        frame = rocketpy.read(spark, filled, topic="orders", columns=columns)
        assert frame.columns == ["body", "tags"]
    assert len(rocketpy.read(spark, filled, topic="orders").columns) == 10


def test_other_options_have_the_names_of_the_format(spark: SparkSession, filled: str) -> None:
    paid = rocketpy.read(
        spark, filled, topic="orders", columns=["tags"], tags="paid", failOnDataLoss=False, sql=None
    )
    assert [row["tags"] for row in paid.collect()] == ["paid"] * 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colums": "body"}, "did you mean 'columns'"),
        ({"columns": ["bodi"]}, "did you mean 'body'"),
    ],
)
def test_what_is_misspelt_is_refused(
    spark: SparkSession, filled: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(AnalysisException, match=words):
        rocketpy.read(spark, filled, topic="orders", **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"topic": "orders"}, 10),
        ({"topic": "orders", "columns": ["body"]}, 10),
        ({"topicPattern": "orders|bills"}, 11),
        ({"topic": "orders", "startingOffsets": '{"orders": {"0": 3}}'}, 7),
        ({"topic": "orders", "tags": "paid"}, 5),
        ({"topic": "orders", "sql": "TAGS = 'open'"}, 5),
        ({"scan": "commitlog"}, 11),
        ({"view": "topics"}, 2),
    ],
)
def test_a_count_is_that_of_the_rows_read(
    spark: SparkSession, filled: str, options: dict[str, Any], expected: int
) -> None:
    assert rocketpy.count(spark, filled, **options) == expected
    assert rocketpy.read(spark, filled, **options).count() == expected


def test_a_count_looks_at_no_message(spark: SparkSession, tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", queues=1)
        store.append("orders", pa.table({"body": [b"to be damaged"] * 3}))
    log = next((tmp_path / "store" / "commitlog").iterdir())
    with log.open("r+b") as file:
        whole = file.read(4096)
        file.seek(0)
        file.write(whole.replace(b"damaged", b"DAMAGED"))
    assert rocketpy.count(spark, tmp_path / "store", topic="orders") == 3
    with pytest.raises(Exception, match="does not match its check sum"):
        rocketpy.read(spark, tmp_path / "store", topic="orders").collect()
