"""Tasks that Spark runs again: their rows are stored once, and nothing is left lying about."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.connector.retrying_job import ROWS

import rocketpy
from rocketpy.broker_core.storage.layout import STAGED

JOB = Path(__file__).with_name("retrying_job.py")
WAYS = ("error", "kill")


class Ran(NamedTuple):
    """The store that was written to, and what Spark said meanwhile, by the way of failing."""

    store: rocketpy.Store
    said: dict[str, str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One Spark for all ways: it takes longer to start than to fail."""
    with rocketpy.open(tmp_path_factory.mktemp("retries") / "store") as store:
        command = [sys.executable, str(JOB), str(store.path), *WAYS]
        job = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert job.returncode == 0, job.stderr[-3000:]
        _, *parts = re.split(f"^({'|'.join(WAYS)})\n", job.stderr, flags=re.MULTILINE)
        yield Ran(store, dict(zip(parts[::2], parts[1::2], strict=True)))
        assert list(store.verify()) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS)
def test_tasks_that_fail_once_are_stored_once(ran: Ran, how: str) -> None:
    assert "Lost task" in ran.said[how]
    found = ran.store.read(how, columns=["body"]).read_all()["body"].to_pylist()
    assert sorted(map(int, found)) == list(range(ROWS))
    assert list((ran.store.path / STAGED).iterdir()) == []
