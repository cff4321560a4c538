"""A Spark that does not start: one line that says so, below what Spark itself had to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rocketpy
from rocketpy.spark_jobs.quiet_start import SparkLog, SparkStartError


def test_without_java_a_job_ends_with_2_and_the_way_to_the_cause(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 1)
    program = "from rocketpy.spark_jobs.cli import main; main()"
    command = ["job", "rebalance", str(tmp_path / "store"), "--dry-run"]
    ended = subprocess.run(
        [sys.executable, "-c", program, *command],
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    *spark_words, last = ended.stderr.splitlines()
    assert f"{tmp_path}/bin/java: No such file or directory" in " ".join(spark_words)
    assert last.startswith("rocketpy: Spark does not start: ")
    assert last.endswith("; 'rocketpy doctor' looks for the cause")
    assert "Traceback" not in ended.stderr


def test_what_is_said_while_spark_starts_is_kept_until_it_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def start(*_: object) -> None:
        os.write(2, b"words of a JVM\n")
        if fails:
            raise OSError("no port\nand more")

    monkeypatch.setattr("rocketpy.spark_jobs.quiet_start.start_spark", start)
    fails = False
    with SparkLog() as log:
        log.start(1)
    os.write(2, b"ours\n")
    assert capfd.readouterr().err == "ours\n"
    fails = True
    with SparkLog() as log, pytest.raises(SparkStartError, match="no port; "):
        log.start(1)
    assert capfd.readouterr().err == "words of a JVM\n"
