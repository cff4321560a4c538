"""Stores and checkpoints that older versions left: see make_store.py."""

from __future__ import annotations

import tarfile
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = ("offsets-version-1", "offsets-version-2")  # of the checkpoint; the first is the oldest
BODIES = [f"order {number}".encode() for number in range(120)]


def unpacked(version: str, folder: Path) -> tuple[Path, Path]:
    """Return the store and the checkpoint that a version left, as copies."""
    with tarfile.open(HERE / f"{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "store", folder / "checkpoint"
