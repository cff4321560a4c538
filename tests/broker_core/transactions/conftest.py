from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_core.transactions.drafting import CONFIG

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.storage.store import MessageStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[MessageStore]:
    """A store with the topic `orders`; sound when the test is over."""
    opened = MessageStore(tmp_path / "store", CONFIG, clock=clock)
    opened.create_topic("orders", 4)
    yield opened
    assert list(opened.verify()) == []
    opened.close()
