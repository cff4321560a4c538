from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.storage.disk import Disk

GOLDEN = Path(__file__).parents[2] / "golden" / "apache-rocketmq-store.tar.xz"


@pytest.fixture(scope="session")
def golden_files() -> dict[str, bytes]:
    """The files that Apache RocketMQ 5.5.0 left under config/, by name."""
    with tarfile.open(GOLDEN) as archive:
        members = [m for m in archive if m.isfile() and Path(m.name).parent.name == "config"]
        files = {Path(member.name).name: archive.extractfile(member) for member in members}
        return {name: file.read() for name, file in files.items() if file is not None}


@pytest.fixture
def golden_config(tmp_path: Path, golden_files: dict[str, bytes]) -> Path:
    """A config folder as Apache's broker left it, to be changed at will."""
    folder = tmp_path / "config"
    folder.mkdir()
    for name, data in golden_files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def disk() -> Replaces:
    return Disk()


@pytest.fixture
def config_file(tmp_path: Path, disk: Replaces) -> Callable[[str], ConfigFile]:
    """Opens a file of an empty config folder."""
    return lambda name: ConfigFile(tmp_path / name, disk)
