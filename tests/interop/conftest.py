"""Fixtures of the interop tests; without Maven and a JDK they are skipped, in CI they fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.interop.installation import install, missing_commands

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session", autouse=True)
def _apache_rocketmq() -> None:
    missing = ", ".join(missing_commands())
    if missing and os.environ.get("CI"):
        pytest.fail(f"the interop tests need {missing}, which CI must have installed")
    if missing:
        pytest.skip(f"the interop tests need {missing}")
    install()
