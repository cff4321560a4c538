"""The doctor on what Spark needs: each fault is made, and found with its remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.connector.environment import check_environment


@pytest.fixture(autouse=True)
def _own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)


def found() -> dict[str, Finding]:
    findings = {finding.check: finding for finding in check_environment()}
    for finding in findings.values():
        assert finding.remedy or finding.verdict == "ok", "nobody is left alone with a fault"
    return findings


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_where_the_tests_run_there_is_no_fault() -> None:
    findings = found()
    assert set(findings) == {"pyspark", "java", "worker", "discovery", "delta"}
    assert [finding for finding in findings.values() if finding.verdict == "fault"] == []


def test_a_missing_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = found()["java"]
    assert finding.what == f"{tmp_path}/bin/java cannot be run (JAVA_HOME)"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found()["java"].verdict == "fault"
    assert "install Java 17 or 21" in found()["java"].remedy


def test_a_java_of_the_wrong_version_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.22" 2024-01-16' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = found()["java"]
    assert finding.verdict == "fault"
    assert "is version 11; Spark 4.2 needs 17 or later" in finding.what


def test_a_worker_python_without_packages_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "bin" / "python"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    finding = found()["worker"]
    assert finding.verdict == "fault"
    assert "lacks pyspark, pyarrow, numpy, mmh3, rocketpy" in finding.what
    assert finding.remedy.startswith(f"export PYSPARK_PYTHON={sys.executable}")


def test_a_worker_python_of_another_version_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = program(tmp_path / "python", """echo '{"version": [3, 8], "missing": []}'""")
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    assert "Python 3.8; the driver is 3." in found()["worker"].what


def test_a_worker_python_that_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "nothing"))
    assert "no Python that can be run" in found()["worker"].what


def test_a_driver_python_that_runs_no_programs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "driver" not in found()
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "true")
    assert found()["driver"].what.endswith("no format will be found")


def test_a_package_that_hides_all_formats_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark_broken.py").write_text("import nothing_of_this_name\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.syspath_prepend(tmp_path)
    finding = found()["discovery"]
    assert finding.verdict == "fault"
    assert "pyspark_broken cannot be imported" in finding.what
    assert "rocketpy.register(spark)" in finding.remedy


def test_an_environment_that_is_not_activated_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    finding = found()["discovery"]
    assert (finding.verdict, finding.what) == (
        "fault",
        "Spark looks for formats with python3, which has no pyspark_rocketpy",
    )
    assert finding.remedy.startswith(f"export PYSPARK_PYTHON={sys.executable}")


def test_a_format_that_is_not_on_the_path_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkgutil.iter_modules", lambda: [])
    assert "pyspark_rocketpy is not on the path" in found()["discovery"].what


def test_delta_jars_that_were_not_fetched_yet_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    finding = found()["delta"]
    assert finding.verdict == "warning"
    assert "not here yet" in finding.what
