"""Where a group's offsets are kept: with the brokers, or in a file of this client.

K1  A group that has an offset goes on there; otherwise start.py says where it begins.
K2  Only what changed is committed, and once a minute all: brokers save offsets every few seconds,
    so one that was killed goes back by as much.
K3  A commit begins after the one before it was answered. Brokers handle the requests of a client in
    several threads: of two on their way, the older might win. That is why pulls carry no commits,
    unlike those of Apache's clients: a pull may be handled after the last commit of a queue.
K4  So do commits to one broker inside of one call: of two first ones of a group and a topic that
    come at once, Apache's broker forgets one, though it answered both (seen with 5.5.0).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from rocketpy.broker_core.client.consuming.local_offsets import LocalOffsets
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.start import StartFrom, StartPoint
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError

log = logging.getLogger(__name__)

_ALL_EVERY_S = 60.0


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
    if look is StartPoint.END:
        return await calls.end(queue)
    if look is StartPoint.TIME:
        return await calls.by_time(queue, start.time_ms)
    return await calls.first(queue)


class RemoteOffsets:
    """Offsets with the brokers, for all clients of a group."""

    def __init__(
        self, group: str, calls: QueueCalls, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._group, self._calls, self._clock = group, calls, clock
        self._known: dict[MessageQueue, int] = {}
        self._all_s = clock()  # when all was told last
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
        if self._clock() - self._all_s >= _ALL_EVERY_S:
            self._known.clear()
            self._all_s = self._clock()
        changed = {queue: each for queue, each in offsets.items() if self._known.get(queue) != each}
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in changed:
            by_broker.setdefault(queue.broker, []).append(queue)
        told = await asyncio.gather(*(self._tell(each, changed) for each in by_broker.values()))
        return [queue for failed in told for queue in failed]

    async def _tell(
        self, queues: list[MessageQueue], offsets: Mapping[MessageQueue, int]
    ) -> list[MessageQueue]:
        """Tell one broker, queue by queue; return those that it was not told."""
        failed: list[MessageQueue] = []
        for number, queue in enumerate(queues):
            try:
                await self._calls.commit(self._group, queue, offsets[queue])
            except (NoBrokerError, ServerUnreachableError) as error:  # nor would it take the others
                log.warning("offsets of %s are not committed: %s", queue.topic, error)
                return failed + queues[number:]
            except RocketPyError as error:
                log.warning("offset %d of %s is not committed: %s", offsets[queue], queue, error)
                failed.append(queue)
            else:
                self._known[queue] = offsets[queue]
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
