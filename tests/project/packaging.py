"""Building the project from a copy: what earlier builds left in the checkout could hide a loss."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker_core", "connector", "spark_jobs")


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
