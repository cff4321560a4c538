"""The command line, in this process and as one of its own; the store that Apache wrote."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker_core.storage.damaged_stores import make_store
from tests.interop import golden
from typer.testing import CliRunner, Result

from rocketpy.broker_core.cli import app

Run = Callable[..., Result]
COMMAND = (sys.executable, "-m", "rocketpy.broker_core.cli")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `rocketpy store …` in this process, on a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, ["store", *map(str, arguments)])

    return run


@pytest.fixture
def rocketpy_(run: Run) -> Run:  # noqa: ARG001
    """Run `rocketpy …` in this process, on the same terminal."""
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `rocketpy …` as a process of its own."""

    def process(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return process


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that Apache RocketMQ wrote; not to be changed."""
    return golden.unpack(tmp_path_factory.mktemp("apache"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of ours with 300 messages of two topics."""
    return make_store(tmp_path / "store")
