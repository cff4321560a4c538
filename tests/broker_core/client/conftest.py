"""A name server and two brokers of ours, in a thread, for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.local import LocalBroker, local_broker


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2) as running:
        yield running


@pytest.fixture
def cluster(servers: LocalBroker) -> Iterator[Cluster]:
    """A client of a cluster of two brokers without messages, topics and groups."""
    servers.reset()
    with Cluster(servers.namesrv_addr) as opened:
        yield opened
