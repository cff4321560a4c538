"""A broker with a trace topic, and clients that trace to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

import rocketpy
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.protocol.message_trace import MessageTrace

PATIENCE_S = 15.0
SETTINGS = {"traceTopicEnable": "true", "messageDelayLevel": "1s 1s 1s 1s"}
Traced = Callable[..., MessageTrace]


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    topics = {"orders": 4, "shop%orders": 4, "traces": 1}
    with local_broker(settings=SETTINGS, topics=topics) as running:
        yield running


@pytest.fixture
def fresh(servers: LocalBroker) -> LocalBroker:
    servers.reset()
    return servers


@pytest.fixture
def mq(fresh: LocalBroker) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(fresh.namesrv_addr, group="billing", trace=True) as client:
        yield client


@pytest.fixture
def traced(fresh: LocalBroker) -> Iterator[Traced]:
    """Returns the trace of a message, once it has so many sends and ended deliveries."""
    with rocketpy.connect(fresh.namesrv_addr) as looker:

        def look(
            uniq_key: str, *, sends: int = 0, ends: int = 0, topic: str = "RMQ_SYS_TRACE_TOPIC"
        ) -> MessageTrace:
            deadline_s = time.monotonic() + PATIENCE_S
            while True:
                found = looker.admin.messages.trace(uniq_key, topic=topic)
                ended = [each for each in found.deliveries if each.is_success is not None]
                if len(found.sends) >= sends and len(ended) >= ends:
                    return found
                assert time.monotonic() < deadline_s, found
                time.sleep(0.05)

        yield look
