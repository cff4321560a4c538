"""Fixtures for the tests of programs that use a store; pytest finds them by itself.

Loaded in every test run where the package is installed, so the rest of it is imported on use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rocketpy.broker_core.embedded import Store


@pytest.fixture
def rocketpy_store(tmp_path: Path) -> Iterator[Store]:
    """An empty store in a folder of the test's own; it must be sound when the test ends."""
    from rocketpy.broker_core.embedded import open

    with open(tmp_path / "rocketpy-store") as store:
        yield store
        problems = [str(problem) for problem in store.verify()]
    assert not problems, f"the test left a store with problems: {problems}"
