"""Fixtures for the tests of programs that use a store or a broker; pytest finds them by itself.

Loaded in every test run where the package is installed, so the rest of it is imported on use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rocketpy.broker_core.embedded import Store
    from rocketpy.broker_core.local import LocalBroker


@pytest.fixture
def rocketpy_store(tmp_path: Path) -> Iterator[Store]:
    """An empty store in a folder of the test's own; it must be sound when the test ends."""
    from rocketpy.broker_core.embedded import open

    with open(tmp_path / "rocketpy-store") as store:
        yield store
        problems = [str(problem) for problem in store.verify()]
    assert not problems, f"the test left a store with problems: {problems}"


@pytest.fixture(scope="session")
def rocketpy_broker_of_session() -> Iterator[LocalBroker]:
    """A broker for all tests of a run; use `rocketpy_broker`, which empties it for each."""
    from rocketpy.broker_core.local import local_broker

    with local_broker() as broker:
        yield broker


@pytest.fixture
def rocketpy_broker(rocketpy_broker_of_session: LocalBroker) -> Iterator[LocalBroker]:
    """A name server and a broker with an empty store, which must be sound when the test ends.

    They run in a thread of this process: `rocketpy_broker.namesrv_addr` is for clients.
    """
    broker = rocketpy_broker_of_session
    broker.reset()
    yield broker
    broker.faults.clear()
    with broker.store() as store:
        problems = [str(problem) for problem in store.verify()]
    assert not problems, f"the test left a store with problems: {problems}"
