"""Letting go of clients that send no heartbeats, and of locks that nobody asks for any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.services.periodic import Periodic
from rocketpy.broker_core.clock import steady_ms

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_EVERY_S = 10.0  # as ClientHousekeepingService


class ClientExpiry:
    """Looks for silent clients every ten seconds."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._periodic = Periodic("expiry of clients", _EVERY_S, self.look)

    def start(self) -> None:
        """Begin to look."""
        self._periodic.start()

    async def stop(self) -> None:
        """End."""
        await self._periodic.stop()

    async def look(self) -> None:
        """Close the connections of silent clients, and let expired locks go."""
        broker = self._broker
        broker.clients.close_silent(broker.settings.channel_expired_timeout)
        broker.queue_locks.forget_expired(now_ms=steady_ms(broker.clock))
