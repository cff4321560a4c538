"""How Spark comes to know the format: by itself, in SQL, by hand, and from a shipped wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.connector.conftest import MakeStream
from tests.project.packaging import build, copy_source

import rocketpy

# Each test with a process of its own needs a Spark of its own.
SESSION = """
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")


def count():
    reader = spark.read.format("rocketpy").option("topic", "orders")
    return reader.load(sys.argv[1]).count()
"""


@pytest.fixture
def orders(store: rocketpy.Store) -> rocketpy.Store:
    store.create_topic("orders", queues=1)
    for number in range(3):
        store.send("orders", f"{number}", tags="paid")
    return store


def run(
    program: str, *arguments: str | Path, python: str = sys.executable, path: list[Path]
) -> str:
    """Run a program in a session of its own; return what it printed last."""
    environment = os.environ | {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
    }
    return run_in(environment, program, *arguments, python=python)


def run_in(
    environment: dict[str, str], program: str, *arguments: str | Path, python: str = sys.executable
) -> str:
    """Do the same with all environment variables given."""
    done = subprocess.run(
        [python, "-c", SESSION + program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_sql_reads_a_topic_as_a_view(spark: SparkSession, orders: rocketpy.Store) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW orders USING rocketpy "
        f"OPTIONS (path '{orders.path}', topic 'orders', columns 'queue_offset, body, tags')"
    )
    rows = spark.sql("SELECT string(body) AS body FROM orders WHERE queue_offset > 0").collect()
    assert [row["body"] for row in rows] == ["1", "2"]
    spark.sql("DROP VIEW orders")


def test_registering_by_hand_where_it_is_known_already_is_fine(
    spark: SparkSession, orders: rocketpy.Store
) -> None:
    rocketpy.register(spark)
    rocketpy.register(spark)
    reader = spark.read.format("rocketpy").option("topic", "orders")
    assert reader.load(str(orders.path)).count() == 3


@pytest.mark.usefixtures("orders")
def test_a_stream_of_a_registered_format_adds_nothing_to_what_streams_share(
    spark: SparkSession, stream: MakeStream
) -> None:
    """Two streams that add a name to that map at once can leave it broken for the whole session."""
    rocketpy.register(spark)
    sources = spark._jsparkSession.sessionState().dataSourceManager()
    shared = sources.lookupDataSource("rocketpy").dataSourceCls().envVars()
    names = set(shared.keySet())

    assert stream(topic="orders", startingOffsets="earliest").run() == [["0", "1", "2"]]
    assert set(shared.keySet()) == names
    assert all(shared.get(name) for name in names), "written by the stream, so the map is the one"


@pytest.mark.further
def test_a_broken_package_of_others_hides_the_format_until_it_is_registered(
    orders: rocketpy.Store, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "pyspark_broken.py").write_text("raise ImportError('not ours')\n")
    source = Path(rocketpy.__file__).parents[1]
    program = """
import rocketpy
try:
    print(count())
except Exception as error:
    rocketpy.register(spark)
    print("[DATA_SOURCE_NOT_FOUND]" in str(error), count())
"""
    assert run(program, orders.path, path=[others, source]) == "True 3"


@pytest.mark.further
def test_an_environment_that_is_not_activated_hides_the_format_until_it_is_registered(
    orders: rocketpy.Store, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    silent = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in silent}
    environment["PATH"] = f"{tmp_path / 'other' / 'bin'}:{os.environ['PATH']}"
    program = """
try:
    print(count())
except Exception as error:
    import rocketpy
    rocketpy.register(spark)
    print("[DATA_SOURCE_NOT_FOUND]" in str(error), count())
"""
    assert run_in(environment, program, orders.path) == "True 3"


@pytest.mark.further
def test_the_wheel_renamed_to_zip_is_all_that_a_session_needs(
    orders: rocketpy.Store, tmp_path: Path
) -> None:
    wheel = build("wheel", copy_source(tmp_path / "source"), tmp_path / "dist")
    archive = wheel.rename(tmp_path / "rocketpy.zip")
    # Without `site` the checkout that an editable installation points at is not on the path.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    program = """
import importlib.util

assert importlib.util.find_spec("rocketpy") is None, "it is on the path"
spark.sparkContext.addPyFile(sys.argv[2])
import rocketpy

rocketpy.register(spark)  # Spark looks for formats on the path, not in what was shipped
print(count(), rocketpy.__file__)
"""
    site = [Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")]
    count, _, file = run(program, orders.path, archive, python=str(python), path=site).partition(
        " "
    )
    assert count == "3"
    assert file.endswith("rocketpy.zip/rocketpy/__init__.py")
