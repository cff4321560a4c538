"""Work that a broker does again and again while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class Periodic:
    """Does something at intervals, in the loop, until it is stopped.

    Work that fails is told in the log, and done again at the next interval.
    """

    def __init__(self, name: str, every_s: float, work: Callable[[], Awaitable[None]]) -> None:
        self._name, self._every_s, self._work = name, every_s, work
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    def start(self) -> None:
        """Begin; the first time is after one interval."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """End, after the work that is just being done. Stopping twice is fine."""
        async with self._turn:
            if self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            async with self._turn:
                try:
                    await self._work()
                except Exception:
                    log.exception(
                        "%s failed, and is tried again in %g s", self._name, self._every_s
                    )
