"""The queues that a client of a group has now: taken up, read, committed, handed over.

H1  A queue is taken up at the group's offset; in order only after its broker locked it for us.
H2  A queue is handed over in this order: nothing more is handed out, in order the handler that has
    something of it ends, the offset is committed, the lock is released.
H3  A queue that is being handed over is not taken up again before that is over.
H4  A lock that ran out (a process that was stopped for a while, a broker out of reach) may have
    been another's: once it is ours again, the queue is read on where the group is by then.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable

from rocketpy.broker_core.client.consuming.offset_keeping import OffsetKeeping, start_of
from rocketpy.broker_core.client.consuming.process_queue import ProcessQueue
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.reading import QueuePuller
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue

log = logging.getLogger(__name__)

COMMIT_EVERY_S = 5.0
LOCK_EVERY_S = 20.0


class HeldQueues:
    """The queues of one group that this client reads. Used in one loop."""

    def __init__(
        self,
        session: Session,
        terms: GroupTerms,
        keeping: OffsetKeeping,
        *,
        arrived: Callable[[QueuePuller], None],
    ) -> None:
        self._session, self._terms, self._keeping, self._arrived = session, terms, keeping, arrived
        self._calls = QueueCalls(session)
        self.readers: dict[MessageQueue, QueuePuller] = {}
        self._leaving: dict[MessageQueue, QueuePuller] = {}
        self._handing_over: set[asyncio.Task[None]] = set()

    # --- taking up and handing over ---------------------------------------------------------------

    async def gain(self, queues: Iterable[MessageQueue]) -> bool:
        """Take queues up; return whether all of them are ours now. What fails is logged."""
        wanted = [each for each in queues if each not in self.readers]
        free = [each for each in wanted if each not in self._leaving]
        locked = await self._lock(free) if self._terms.is_locking else frozenset(free)
        taken = await asyncio.gather(*(self._take_up(each) for each in free if each in locked))
        self._share_limits()
        return len(taken) == len(wanted) and all(taken)

    async def _take_up(self, queue: MessageQueue) -> bool:
        locked_s = time.monotonic()
        try:
            start = await start_of(queue, self._keeping, self._terms.start, self._calls)
        except RocketPyError as error:
            log.warning("%s is not taken up for the moment: %s", queue, error)
            return False
        process = ProcessQueue(
            queue, start, limits=self._terms.limits, is_orderly=self._terms.is_orderly
        )
        reader = QueuePuller(self._session, self._terms, process, arrived=self._arrived)
        reader.locked_s = locked_s if self._terms.is_locking else None
        self.readers[queue] = reader
        reader.start()
        log.info("%s: %s is ours, from %d on", self._terms.group, queue, start)
        return True

    async def lose(self, queues: Iterable[MessageQueue]) -> None:
        """Hand queues over. In order it may go on in the background until a handler ends."""
        lost = [self.readers.pop(each) for each in queues]
        for reader in lost:
            reader.stop()
            reader.process.is_paused = True
            self._leaving[reader.queue] = reader
            log.info("%s: %s goes to another", self._terms.group, reader.queue)
        busy = [each for each in lost if self._terms.is_orderly and each.out]
        await self._hand_over([each for each in lost if each not in busy])
        for reader in busy:
            work = self._hand_over_when_idle(reader)
            task = self._session.run(work, f"handing over {reader.queue}")
            self._handing_over.add(task)
            task.add_done_callback(self._handing_over.discard)
        self._share_limits()

    async def _hand_over_when_idle(self, reader: QueuePuller) -> None:
        await reader.wait_until_idle()
        await self._hand_over([reader])

    async def _hand_over(self, readers: list[QueuePuller]) -> None:
        """Commit and unlock; broker by broker one request for all locks."""
        for reader in readers:
            reader.process.drop()
        try:
            await self._keeping.commit({each.queue: each.process.position for each in readers})
            if self._terms.is_locking:
                await self._unlock([each.queue for each in readers])
        finally:
            for reader in readers:
                self._leaving.pop(reader.queue, None)

    async def close(self, timeout_s: float) -> bool:
        """Hand all over; wait for handlers that run, up to a time. Return whether all ended."""
        readers = [*self.readers.values()]
        for reader in readers:
            reader.stop()
            reader.process.is_paused = True
        idle = [asyncio.ensure_future(each.wait_until_idle()) for each in readers]
        pending: set[asyncio.Future[None]] = set()
        if idle or self._handing_over:
            _, pending = await asyncio.wait([*idle, *self._handing_over], timeout=timeout_s)
        for waiting in pending:
            waiting.cancel()
        self.readers.clear()
        await self._hand_over(readers)
        return not pending

    # --- upkeep -----------------------------------------------------------------------------------

    def positions(self) -> dict[MessageQueue, int]:
        """Return where the group reads on in the queues that are ours."""
        return {queue: each.process.position for queue, each in self.readers.items()}

    async def commit(self) -> None:
        """Commit all positions that changed; what fails is logged, and tried again next time."""
        await self._keeping.commit(self.positions())

    async def keep_committing(self) -> None:
        """Commit every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            await self.commit()

    async def keep_locks(self) -> None:
        """Renew the locks of all queues, those that are handed over included, until cancelled."""
        while True:
            await asyncio.sleep(LOCK_EVERY_S)
            await self.renew_locks()

    async def renew_locks(self) -> None:
        """Renew all locks now; a queue that another has is read no further."""
        now_s = time.monotonic()
        held = self.readers | self._leaving
        locked = await self._lock(held)
        for queue, reader in held.items():
            if queue in locked and (reader.is_locked(now_s) or await self._catch_up(reader)):
                reader.locked_s = now_s
                reader.note_done()
                self._arrived(reader)

    async def _catch_up(self, reader: QueuePuller) -> bool:
        """Go on where the group is, if another has read on; return whether that is known."""
        try:
            committed = await self._keeping.committed(reader.queue)
        except RocketPyError as error:
            log.warning("%s is not read for the moment: %s", reader.queue, error)
            return False
        if committed is not None and committed > reader.process.position:
            log.warning(
                "%s: another has read %s up to %d", self._terms.group, reader.queue, committed
            )
            reader.restart(committed)
        return True

    async def reset(self, offsets: dict[MessageQueue, int]) -> None:
        """Read queues of ours from other offsets on, and commit these."""
        mine = {queue: each for queue, each in offsets.items() if queue in self.readers}
        for queue, queue_offset in mine.items():
            log.info("%s: %s is read from %d on", self._terms.group, queue, queue_offset)
            self.readers[queue].restart(queue_offset)
        await self._keeping.commit(mine)

    def _share_limits(self) -> None:
        """Divide what a topic may have among its queues."""
        counts: dict[str, int] = {}
        for queue in self.readers:
            counts[queue.topic] = counts.get(queue.topic, 0) + 1
        for queue, reader in self.readers.items():
            reader.process.limits = self._terms.limits.of_each(counts[queue.topic])

    async def _lock(self, queues: Iterable[MessageQueue]) -> frozenset[MessageQueue]:
        """Return the queues that are locked for us now; brokers that fail are logged."""
        by_broker = _by_broker(queues)
        asked = [
            self._calls.lock(name, self._terms.group, each) for name, each in by_broker.items()
        ]
        locked: frozenset[MessageQueue] = frozenset()
        for result in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(result, RocketPyError):
                log.warning("queues are not locked: %s", result)
            elif isinstance(result, BaseException):
                raise result
            else:
                locked |= result
        return locked

    async def _unlock(self, queues: Iterable[MessageQueue]) -> None:
        for broker, each in _by_broker(queues).items():
            try:
                await self._calls.unlock(broker, self._terms.group, each)
            except RocketPyError as error:
                log.warning("locks end by themselves only, within a minute: %s", error)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    in_order = sorted(queues, key=lambda each: each.broker)
    return {
        broker: [*each]
        for broker, each in itertools.groupby(in_order, key=lambda each: each.broker)
    }
