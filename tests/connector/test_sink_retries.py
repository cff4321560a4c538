"""Tasks that Spark runs again: their rows are stored once, and nothing is left lying about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.storage.layout import STAGED

JOB = Path(__file__).with_name("retrying_job.py")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("how", ["error", "kill"])
def test_tasks_that_fail_once_are_stored_once(store: rocketpy.Store, how: str) -> None:
    command = [sys.executable, str(JOB), str(store.path), how]
    job = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert job.returncode == 0, job.stderr[-3000:]
    assert "Lost task" in job.stderr
    found = store.read("t", columns=["body"]).read_all()["body"].to_pylist()
    assert sorted(map(int, found)) == list(range(120_000))
    assert list((store.path / STAGED).iterdir()) == []
