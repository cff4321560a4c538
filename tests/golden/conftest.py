"""The store that Apache RocketMQ 5.5.0 wrote: one copy to read, others to change at will."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.golden.recorded import ARCHIVE, Row, messages

import rocketpy


@pytest.fixture(scope="session")
def golden_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store as it was left; not to be changed."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if Path(member.name).name != "timerwheel"]
        archive.extractall(folder, members=members, filter="data")
    return folder / "store"


@pytest.fixture(scope="session")
def golden(golden_path: Path) -> Iterator[rocketpy.Store]:
    """The store, open to be read."""
    with rocketpy.open(golden_path, read_only=True) as store:
        yield store


@pytest.fixture
def copied_path(golden_path: Path, tmp_path: Path) -> Path:
    """A copy that a test may write to."""
    return Path(shutil.copytree(golden_path, tmp_path / "store"))


@pytest.fixture(scope="session")
def recorded() -> list[Row]:
    """Every message as Apache's client saw it, by topic, queue and queue offset."""
    return messages()
