from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.children import Zygote
from tests.crash.small_disk import mounted

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def is_soak() -> bool:
    """Whether to run many times over, for minutes."""
    return os.environ.get("ROCKETPY_SOAK") == "1"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: the death of a process does not need a disk."""
    if not os.access(SHARED_MEMORY, os.W_OK):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="rocketpy-", dir=SHARED_MEMORY))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    with mounted(tmp_path, 16 << 20) as disk:
        yield disk


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as zygote:
        yield zygote
