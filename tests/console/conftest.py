"""The places that the console is tested on, each filled once for a file."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.connector.cluster.places import Place
from tests.console.shop import shop, watched
from tests.interop.installation import install, missing_commands

from rocketpy.console.place import WatchedPlace


@pytest.fixture(
    scope="module",
    params=["folder", "ours", pytest.param("apache", marks=pytest.mark.interop)],
)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A shop in a folder, in a cluster of ours, in one of Apache's."""
    kind = str(request.param)
    if kind == "apache":
        missing = ", ".join(missing_commands())
        assert not (missing and os.environ.get("CI")), f"CI must have {missing}"
        if missing:
            pytest.skip(f"Apache's broker needs {missing}")
        install()
    with shop(kind, tmp_path_factory.mktemp("shop") / "store") as place:
        yield place


@pytest.fixture(scope="module")
def place(filled: Place) -> Iterator[WatchedPlace]:
    """The same as the console has it."""
    found = watched(filled)
    yield found
    found.close()
