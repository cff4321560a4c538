"""Saving the offsets that clients committed, every few seconds and when the broker stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.services.periodic import Periodic

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


class OffsetSaving:
    """Writes a broker's offsets by flushConsumerOffsetInterval."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        every_s = broker.settings.flush_consumer_offset_interval / 1000
        self._periodic = Periodic("saving offsets", every_s, self._save)

    def start(self) -> None:
        """Begin to save."""
        self._periodic.start()

    async def stop(self) -> None:
        """Save a last time: call it when no client can commit any more.

        Raises:
            StoreLockedError: another has the store's lock for long.
        """
        await self._periodic.stop()
        await self._save()

    async def _save(self) -> None:
        await self._broker.in_pool(self._broker.offsets.save)
