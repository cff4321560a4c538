"""Fixtures of the interop tests; without Maven and a JDK they are skipped, in CI they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.installation import VERSION, VERSION_4, install, install_4, missing_commands
from tests.interop.protocol_tool import ProtocolTool

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


@pytest.fixture(scope="session", params=[VERSION, VERSION_4])
def protocol_tool(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProtocolTool]:
    """Apache's classes of the protocol, in a JVM of their own: those of 5.x, then those of 4.x."""
    version = str(request.param)
    installation = install_4() if version == VERSION_4 else install()
    home = tmp_path_factory.mktemp("protocol")
    with ProtocolTool(installation.class_path, version=version, home=home) as tool:
        yield tool
