"""What brokers of a test have stored."""

from __future__ import annotations

from typing import Any

from rocketpy.broker_core.local import LocalBroker


def stored(servers: LocalBroker, topic: str) -> list[dict[str, Any]]:
    """Return the messages of a topic on all brokers, as dicts of their columns."""
    found: list[dict[str, Any]] = []
    for index, broker in enumerate(servers.brokers):
        with servers.store(index) as store:
            if topic in store.topics():
                rows = store.read(topic).read_all().to_pylist()
                found += [{**row, "broker": broker.name} for row in rows]
    return found


def bodies(servers: LocalBroker, topic: str) -> list[bytes]:
    """Return the bodies of a topic on all brokers, sorted."""
    return sorted(row["body"] for row in stored(servers, topic))
