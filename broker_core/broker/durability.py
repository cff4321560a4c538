"""Waiting until messages are durable: one sync for all that wait, the next for those after them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)


class Durability:
    """Syncs the log for those who wait for it. Used in the loop only."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: list[Callable[[bool], None]] = []
        self._sync: asyncio.Task[None] | None = None

    def wait(self, finish: Callable[[bool], None]) -> None:
        """Have a function called when what was stored before now is durable.

        It is told False if that took longer than syncFlushTimeout, or failed.
        """
        self._waiting.append(finish)
        if self._sync is None:
            self._sync = self._broker.loop.create_task(self._sync_all())

    async def _sync_all(self) -> None:
        """Sync as long as somebody waits: each time for all who came before it began."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            is_durable = await self._is_synced()
            for finish in waiting:
                finish(is_durable)
        self._sync = None

    async def _is_synced(self) -> bool:
        limit_s = self._broker.settings.sync_flush_timeout / 1000
        try:
            await asyncio.wait_for(self._broker.in_pool(self._broker.store.flush), limit_s)
        except asyncio.TimeoutError:
            log.warning("a sync of the log took longer than %g s", limit_s)
            return False
        except OSError as cause:
            log.error("the log cannot be synced: %s", cause)
            return False
        return True
