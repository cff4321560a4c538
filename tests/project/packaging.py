"""Building the project from a copy: what earlier builds left in the checkout could hide a loss."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker_core", "connector", "console", "spark_jobs")


def copy_source(into: Path) -> Path:
    """Copy what a build needs."""
    for folder in ("src", *PACKAGES):
        left_behind = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, into / folder, symlinks=True, ignore=left_behind)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, into)
    return into


def build(kind: str, source: Path, into: Path) -> Path:
    """Build a wheel or an sdist without the network."""
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(into)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.iterdir()
    return built


def make_environment(wheel: Path, folder: Path) -> Path:
    """Make a virtual environment with a wheel in it; return the folder of its programs.

    What the wheel depends on is taken from the environment of the tests, package by package, by
    links: what that has of the checkout itself is left out.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*command, *options, str(wheel)], check=True)
    packages = folder / "packages"
    packages.mkdir()
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.search(r"rocketpy|\.pth$|__pycache__|^_virtualenv|^pip\b", found.name):
            (packages / found.name).symlink_to(found)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    return folder / "bin"
