"""What a client tells brokers of itself, and when.

H1  Every broker hears of us each 30 s; at once when it is new, or when its connection was lost:
    a broker forgets clients with their connections.
H2  A broker that does not answer is tried again after some seconds.

Plain values, no I/O; times are seconds of a steady clock, handed in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from rocketpy.broker_core.protocol.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
)

EVERY_S = 30.0  # as Apache's client
AGAIN_S = 3.0


class ClientGroups(NamedTuple):
    """The groups in which a client, or a part of it, is."""

    producers: tuple[ProducerData, ...] = ()
    consumers: tuple[ConsumerData, ...] = ()


def joined(groups: Iterable[ClientGroups]) -> ClientGroups:
    """Return all groups of a client; of several that are the same, the last."""
    producers: dict[str, ProducerData] = {}
    consumers: dict[str, ConsumerData] = {}
    for each in groups:
        producers.update((group.group_name, group) for group in each.producers)
        consumers.update((group.group_name, group) for group in each.consumers)
    return ClientGroups(tuple(producers.values()), tuple(consumers.values()))


def heartbeat(client_id: str, groups: ClientGroups) -> bytes:
    """Return the body of a heartbeat, of its first version: brokers of 4.x know no other."""
    return HeartbeatData(
        client_id=client_id, producers=groups.producers, consumers=groups.consumers
    ).encode()


class HeartbeatTimes:
    """When each broker is to hear of us next. Used by one loop."""

    def __init__(self) -> None:
        self._due_s: dict[str, float] = {}

    def due(self, servers: Collection[str], now_s: float) -> list[str]:
        """Return the brokers that are to hear of us now; those not among them are forgotten."""
        for server in self._due_s.keys() - set(servers):
            del self._due_s[server]
        return [server for server in servers if self._due_s.get(server, now_s) <= now_s]

    def note_sent(self, server: str, now_s: float) -> None:
        """Take up that a heartbeat goes out."""
        self._due_s[server] = now_s + EVERY_S

    def note_failed(self, server: str, now_s: float) -> None:
        """Take up that a broker did not take a heartbeat."""
        self._due_s[server] = now_s + AGAIN_S

    def note_lost(self, server: str) -> None:
        """Take up that the connection to a broker is lost, and what it knew of us with it."""
        self._due_s.pop(server, None)

    @property
    def told(self) -> list[str]:
        """The brokers that may know of us."""
        return [*self._due_s]
