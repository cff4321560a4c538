"""The home that local_spark() gives to Spark: its Python processes import what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocketpy.connector.spark_home import home_without_zip, quick_home

_LOCAL = {"spark.master": "local[2]"}
_PROGRAM = """
import os, rocketpy
spark = rocketpy.local_spark(2)
assert "SPARK_HOME" not in os.environ
rows = spark.sparkContext.parallelize([0], 1)
print(rows.map(lambda _: __import__("pyspark").__file__).collect()[0])
"""


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user with a cache, and without settings."""
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def chosen(settings: dict[str, str]) -> str | None:
    with quick_home(settings):
        return os.environ.get("SPARK_HOME")


def test_it_has_all_that_spark_needs_but_its_python(tmp_path: Path) -> None:
    home = home_without_zip(tmp_path)
    assert home is not None
    assert (home / "bin" / "spark-submit").is_file()
    assert any((home / "jars").glob("spark-core*.jar"))
    assert not (home / "python").exists()
    assert home_without_zip(tmp_path) == home


def test_links_that_lead_elsewhere_are_made_anew(tmp_path: Path) -> None:
    home = home_without_zip(tmp_path)
    assert home is not None
    (home / "jars").unlink()
    (home / "jars").symlink_to(tmp_path)
    (home / "conf").symlink_to(tmp_path / "gone")
    assert home_without_zip(tmp_path) == home
    assert any((home / "jars").glob("spark-core*.jar"))
    assert not (home / "conf").is_symlink()


def test_a_cache_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert home_without_zip(tmp_path / "file") is None


def test_a_user_without_a_home_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", none)
    assert chosen(_LOCAL) is None


def test_it_is_chosen_while_the_session_starts() -> None:
    assert chosen(_LOCAL) is not None
    assert "SPARK_HOME" not in os.environ


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.master": "spark://host:7077"},
        {"spark.master": "local-cluster[2,1,1024]"},
        {**_LOCAL, "spark.pyspark.python": "/usr/bin/python3"},
    ],
)
def test_it_is_not_for_processes_elsewhere_or_of_another_python(settings: dict[str, str]) -> None:
    assert chosen(settings) is None


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_it_is_not_for_a_python_that_the_user_chose(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, sys.executable)
    assert chosen(_LOCAL) is not None
    monkeypatch.setenv(name, "/opt/other/bin/python3")
    assert chosen(_LOCAL) is None


def test_a_home_of_the_users_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert chosen(_LOCAL) == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark"


@pytest.mark.spark
@pytest.mark.slow
def test_workers_import_the_pyspark_that_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert "pyspark.zip" not in done.stdout
    assert done.stdout.strip().endswith("pyspark/__init__.py")
