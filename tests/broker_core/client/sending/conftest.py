"""Two brokers with a topic, and clients of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rocketpy
from rocketpy.broker_core.local import LocalBroker, local_broker


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2, topics={"t": 2}) as running:
        yield running


@pytest.fixture
def fresh(servers: LocalBroker) -> LocalBroker:
    """The brokers without messages and faults; both run."""
    servers.reset()
    return servers


@pytest.fixture
def mq(fresh: LocalBroker) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(fresh.namesrv_addr) as client:
        yield client
