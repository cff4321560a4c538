"""A name server and two brokers of ours, in a thread, for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rocketpy.broker_core.local import LocalBroker, local_broker

QUICK = {"messageDelayLevel": "1s 1s 1s 1s 1s"}  # what fails comes again after a second


@pytest.fixture(scope="module")
def running() -> Iterator[LocalBroker]:
    with local_broker(brokers=2, settings=QUICK) as servers:
        yield servers


@pytest.fixture
def servers(running: LocalBroker) -> LocalBroker:
    """Two brokers without messages, topics and groups."""
    running.reset()
    return running
