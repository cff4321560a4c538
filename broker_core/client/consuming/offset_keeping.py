"""Where a group's offsets are kept: with the brokers, or in a file of this client.

K1  A group that has an offset goes on there; otherwise start.py says where it begins.
K2  Only what changed is committed.
K3  A commit begins after the one before it was answered. Brokers handle the requests of a client in
    several threads: of two on their way, the older might win. That is why pulls carry no commits,
    unlike those of Apache's clients: a pull may be handled after the last commit of a queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from rocketpy.broker_core.client.consuming.local_offsets import LocalOffsets
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.start import Look, StartFrom
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue

log = logging.getLogger(__name__)


class OffsetKeeping(Protocol):
    """Keeps the offsets of one group."""

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return where the group reads on; None if it never did."""

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> list[MessageQueue]:
        """Note where the group reads on; return the queues for which that failed, once logged."""


async def start_of(
    queue: MessageQueue, keeping: OffsetKeeping, start: StartFrom, calls: QueueCalls
) -> int:
    """Return where a group begins in a queue now.

    Raises:
        NoBrokerError, ServerUnreachableError, ServerRefusedError
    """
    committed = await keeping.committed(queue)
    if committed is not None and committed >= 0:
        return committed
    look = start.look_for(queue)
    if look is Look.END:
        return await calls.end(queue)
    if look is Look.TIME:
        return await calls.by_time(queue, start.time_ms)
    return await calls.first(queue)


class BrokerOffsets:
    """Offsets with the brokers, for all clients of a group."""

    def __init__(self, group: str, calls: QueueCalls) -> None:
        self._group, self._calls = group, calls
        self._known: dict[MessageQueue, int] = {}
        self._last: asyncio.Future[list[MessageQueue]] | None = None

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return where the group reads on: another client may have read since."""
        self._known.pop(queue, None)
        return await self._calls.committed(self._group, queue)

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> list[MessageQueue]:
        """Tell the brokers; return the queues for which that failed."""
        committing = asyncio.ensure_future(self._commit(dict(offsets), self._last))
        self._last = committing
        return await asyncio.shield(committing)  # who is cancelled leaves nothing half told

    async def _commit(
        self,
        offsets: Mapping[MessageQueue, int],
        last: asyncio.Future[list[MessageQueue]] | None,
    ) -> list[MessageQueue]:
        if last is not None:
            await asyncio.wait([last])
        changed = {queue: each for queue, each in offsets.items() if self._known.get(queue) != each}
        asked = [self._calls.commit(self._group, queue, each) for queue, each in changed.items()]
        failed = []
        results = await asyncio.gather(*asked, return_exceptions=True)
        for (queue, queue_offset), result in zip(changed.items(), results, strict=True):
            if isinstance(result, RocketPyError):
                log.warning("offset %d of %s is not committed: %s", queue_offset, queue, result)
                failed.append(queue)
            elif isinstance(result, BaseException):
                raise result
            else:
                self._known[queue] = queue_offset
        return failed


class FileOffsets:
    """Offsets in a file, of this client alone."""

    def __init__(self, file: LocalOffsets) -> None:
        self._file = file
        self._known = file.load()

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return where this client reads on."""
        return self._known.get(queue)

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> list[MessageQueue]:
        """Replace the file, if something changed."""
        merged = self._known | dict(offsets)
        if merged != self._known:
            await asyncio.get_running_loop().run_in_executor(None, self._file.save, merged)
            self._known = merged
        return []
