"""`rocketpy doctor`, as a process of its own, with and without a Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rocketpy

COMMAND = (sys.executable, "-c", "from rocketpy.spark_jobs.cli import main; main()", "doctor")


def doctor(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "COLUMNS": "80"} | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_faults_are_told_in_80_columns_with_exit_code_1(tmp_path: Path) -> None:
    ended = doctor(tmp_path / "nothing")
    assert ended.returncode == 1
    lines = ended.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("FAULT   store     "))
    assert any("give the folder that holds 'commitlog'" in line for line in lines[at:])
    assert max(map(len, lines)) <= 80


def test_help_teaches_by_example_and_loads_no_spark() -> None:
    text = doctor("--help").stdout
    assert "rocketpy doctor shop-store" in text
    assert "Exit codes" in text
    program = (
        "import sys; import rocketpy.spark_jobs.cli; "
        "print([name for name in ('pyspark', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "[]\n"


@pytest.mark.further
@pytest.mark.spark
@pytest.mark.slow
def test_the_whole_way_through_spark_is_tried(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 1)
    ended = doctor(tmp_path / "store", "--spark", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    findings = {each["check"]: each for each in json.loads(ended.stdout.splitlines()[-1])}
    assert findings["spark"]["what"] == "read a store in a task"
    assert findings["delta"]["what"] == "wrote and read a table"


@pytest.mark.spark
@pytest.mark.further
def test_delta_jars_that_are_out_of_reach_are_told(tmp_path: Path) -> None:
    (tmp_path / "ivy.xml").write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        f'<filesystem name="none"><artifact pattern="{tmp_path}/[artifact].jar"/></filesystem>'
        "</resolvers></ivysettings>"
    )
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.jars.ivySettings {tmp_path}/ivy.xml\nspark.jars.ivy {tmp_path}/ivy\n"
    )
    ended = doctor("--spark", "--json", HOME=str(tmp_path), SPARK_CONF_DIR=str(tmp_path))
    assert ended.returncode == 1
    findings = json.loads(ended.stdout.splitlines()[-1])
    assert findings[-1]["check"] == "delta"
    assert "the JARs of delta-spark are out of reach" in findings[-1]["what"]
