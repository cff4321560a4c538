"""What a user has set for Spark elsewhere, read as Spark reads it, wins over our defaults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocketpy.connector.user_settings import user_settings

FILE = """
# a comment
spark.master                 spark://host:7077
spark.executor.memory=4g
spark.app.name : a b c
  spark.ui.enabled   true
spark.empty
"""

PROGRAM = """
import rocketpy
spark = rocketpy.local_spark(2)
print(spark.sparkContext.master, spark.conf.get("spark.sql.shuffle.partitions"))
"""


@pytest.fixture
def home(tmp_path: Path) -> str:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(FILE)
    return str(tmp_path)


def test_the_file_of_defaults_is_read_as_properties(home: str) -> None:
    assert user_settings({}, home) == {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": "4g",
        "spark.app.name": "a b c",
        "spark.ui.enabled": "true",
    }


def test_another_folder_of_settings_counts_instead(home: str, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn")
    assert user_settings({"SPARK_CONF_DIR": str(tmp_path)}, home) == {"spark.master": "yarn"}


@pytest.mark.parametrize(
    "arguments",
    [
        "--master yarn pyspark-shell",
        "--driver-memory 2g --master=yarn pyspark-shell",
        "--conf spark.master=yarn pyspark-shell",
        "-c spark.master=yarn pyspark-shell",
        "--packages a:b:1 --conf 'spark.master=yarn' --name 'my app' pyspark-shell",
    ],
)
def test_arguments_win_over_the_file(home: str, arguments: str) -> None:
    assert user_settings({"PYSPARK_SUBMIT_ARGS": arguments}, home)["spark.master"] == "yarn"


def test_a_file_of_properties_takes_the_place_of_the_defaults(home: str, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("spark.ui.port=4041")
    environ = {"PYSPARK_SUBMIT_ARGS": f"--properties-file {tmp_path / 'mine'} pyspark-shell"}
    assert user_settings(environ, home) == {"spark.ui.port": "4041"}


def test_the_environment_is_asked_last(home: str, tmp_path: Path) -> None:
    assert user_settings({"MASTER": "local[7]"}, home)["spark.master"] == "spark://host:7077"
    assert user_settings({"MASTER": "local[7]"}, str(tmp_path / "none")) == {
        "spark.master": "local[7]"
    }


@pytest.mark.further
@pytest.mark.spark
@pytest.mark.slow
def test_a_local_spark_has_the_master_and_settings_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 7\n")
    arguments = "--master local[1] pyspark-shell"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "local[1] 7\n", done.stderr[-3000:]
