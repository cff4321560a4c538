"""A build backend that does not follow our symlinks drops whole packages without a word."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.project.packaging import PACKAGES, build, copy_source

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_source(tmp_path_factory.mktemp("source"))


def python_files_of(source: Path) -> set[str]:
    """Name each file as the wheel should: `rocketpy/broker_core/errors.py`."""
    src = source / "src"
    expected = {path.relative_to(src).as_posix() for path in src.rglob("*.py")}
    for package in PACKAGES:
        files = (source / package).rglob("*.py")
        expected |= {f"rocketpy/{path.relative_to(source).as_posix()}" for path in files}
    return expected


def python_files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.endswith(".py")}


def test_the_wheel_holds_every_module(source: Path, tmp_path: Path) -> None:
    wheel = build("wheel", source, tmp_path)
    assert python_files_in(wheel) == python_files_of(source)


def test_the_wheel_made_from_the_sdist_holds_every_module(source: Path, tmp_path: Path) -> None:
    sdist = build("sdist", source, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = build("wheel", unpacked, tmp_path / "wheel")
    assert python_files_in(wheel) == python_files_of(source)
