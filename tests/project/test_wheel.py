"""A build backend that does not follow our symlinks drops whole packages without a word."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker_core", "connector", "spark_jobs")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A copy of what a build needs: what earlier builds left in the checkout could hide a loss.
    copy = tmp_path_factory.mktemp("source")
    for folder in ("src", *PACKAGES):
        left_behind = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=left_behind)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    return copy


def build(kind: str, source: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(into)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.iterdir()
    return built


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
