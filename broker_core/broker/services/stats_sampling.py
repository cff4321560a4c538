"""Sampling what a broker counts, so that it can tell rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.services.periodic import Periodic
from rocketpy.broker_core.broker.stats import SAMPLE_S

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


class StatsSampling:
    """Samples a broker's statistics every ten seconds."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._periodic = Periodic("sampling statistics", SAMPLE_S, self._sample)

    def start(self) -> None:
        """Begin to sample."""
        self._periodic.start()

    async def stop(self) -> None:
        """Sample no more."""
        await self._periodic.stop()

    async def _sample(self) -> None:
        self._broker.stats.sample()
