"""Where the table of a backfill may be: in a folder, at a URI, under a name of the catalog."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.spark_jobs import cli
from rocketpy.spark_jobs.job_errors import JobRefusedError

pytestmark = [pytest.mark.spark, pytest.mark.further]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A store of three orders."""
    with rocketpy.open(tmp_path / "orders") as store:
        store.create_topic("orders", queues=1)
        for number in range(3):
            store.send("orders", str(number))
    return tmp_path / "orders"


@pytest.mark.usefixtures("spark")
def test_the_command_line_takes_a_uri_as_spark_does(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.job_app is not None
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        ended = CliRunner().invoke(app, ["job", *words, "--json"])
        assert ended.exit_code == 0, ended.output
        return int(json.loads(ended.output)["rows"])

    table = f"file://{tmp_path}/lake"
    assert run("backfill", str(orders), table) == 3
    assert (tmp_path / "lake" / "_delta_log").is_dir()
    assert run("restore", str(tmp_path / "again"), table) == 3
    assert not (tmp_path / "file:").exists()


def test_a_file_is_no_place_for_a_table(spark: SparkSession, orders: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JobRefusedError, match="is a file; a table is a folder: give another path"):
        rocketpy.backfill(spark, orders, tmp_path / "file")


def test_a_catalog_that_has_forgotten_its_table_is_told(spark: SparkSession, orders: Path) -> None:
    # As the catalog in memory does when Spark stops: the folder is there, the name is not.
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir"))
    folder = Path(warehouse.removeprefix("file:")) / "forgotten"
    rocketpy.backfill(spark, orders, folder)
    try:
        with pytest.raises(JobRefusedError, match="the catalog has no table of this name, but"):
            rocketpy.backfill(spark, orders, "forgotten")
    finally:
        shutil.rmtree(folder)
