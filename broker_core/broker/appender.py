"""Storing what was sent: all messages of one turn of the loop with one append.

A1  Messages are stored in the order in which they came; of one request all, or none if it fails.
A2  The loop never waits for the store's lock: if another has it, a thread waits instead, and what
    comes meanwhile is stored by the next append.
A3  Batches are drafted when they are stored, all of a turn together: that takes half the time.
A4  A request that cannot be stored is refused; it does not take others with it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from rocketpy.broker_core.broker.sent import SentBatch
from rocketpy.broker_core.errors import StoreLockedError
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.service import RefusedError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.storage.appends import Draft, PlacedOne

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

_BUSY = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while"  # Apache's words


class Storing(Protocol):
    """What waits for the storing of its messages."""

    count: int  # of its drafts; of a batch none, until it is drafted

    @property
    def connection(self) -> Connection | None:
        """The connection on which it is answered."""

    def stored(self, placed: Sequence[PlacedOne]) -> None:
        """Its messages are in the log. Called in the loop."""

    def failed(self, cause: Exception) -> None:
        """Nothing of it was stored. Called in the loop."""


class Appender:
    """Collects the messages of a turn and stores them. Used in the loop only."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._store, self._loop = broker, broker.store, broker.loop
        self._drafts: list[Draft] = []
        self._waiting: list[Storing] = []
        self._since_s: list[float] = []  # when those came that wait behind a thread
        self._is_due = self._is_busy = False
        self._idle: asyncio.Future[None] | None = None  # if somebody waits for it
        self.thread_id = 0  # of the thread that appends now

    def put(self, drafts: Sequence[Draft], storing: Storing) -> None:
        """Store messages at the end of this turn; a batch comes without drafts.

        Raises:
            RefusedError: too many wait already.
        """
        if len(self._waiting) >= self._broker.settings.send_thread_pool_queue_capacity:
            remark = "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while"
            raise RefusedError(ResponseCode.SYSTEM_BUSY, remark)
        self._drafts.extend(drafts)
        self._waiting.append(storing)
        if self._is_busy:
            self._since_s.append(self._loop.time())
        elif not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._turn)

    async def store(self, drafts: Sequence[Draft]) -> Sequence[PlacedOne]:
        """Store messages as put() does; return where they are, durable under sync flush."""
        future: asyncio.Future[Sequence[PlacedOne]] = self._loop.create_future()
        self.put(drafts, _Awaited(len(drafts), future))
        placed = await future
        await self._broker.in_pool(self._broker.acknowledge)
        return placed

    async def drained(self) -> None:
        """Return when all that was put has been stored or refused."""
        while self._is_due or self._is_busy:
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)

    def _turn(self) -> None:
        self._is_due = False
        drafts, waiting = self._drafts, self._waiting
        self._drafts, self._waiting = [], []
        if any([type(storing) is SentBatch for storing in waiting]):
            drafts, waiting = self._with_batches(drafts, waiting)
            if not waiting:  # there were only batches, and none of them can be stored
                return self._tell_idle()
        self.thread_id = threading.get_ident()
        try:
            placed = self._store.append_many(drafts, lock_timeout_s=0)
        except StoreLockedError:
            self._in_thread(drafts, waiting, one_by_one=False)
        except Exception as cause:
            log.info("%d messages are stored one by one: %s", len(drafts), cause)
            self._in_thread(drafts, waiting, one_by_one=True)
        else:
            self._finish(drafts, waiting, placed)
            self._tell_idle()
        finally:
            self.thread_id = 0

    def _with_batches(
        self, drafts: list[Draft], waiting: list[Storing]
    ) -> tuple[list[Draft], list[Storing]]:
        """Draft all batches of a turn together, and refuse those that cannot be stored.

        Returns:
            The drafts of all that are left, in the order in which they came, and who waits.
        """
        batches = [storing.batch for storing in waiting if isinstance(storing, SentBatch)]
        admitted = iter(self._broker.incoming.admit_batches(batches))
        found, kept, at = list[Draft](), list[Storing](), 0
        for storing in waiting:
            if isinstance(storing, SentBatch):
                result = next(admitted)
                if isinstance(result, Exception):
                    storing.failed(result)
                    continue
                storing.drafted(result)
                found += result
            else:
                found += drafts[at : at + storing.count]
                at += storing.count
            kept.append(storing)
        return found, kept

    def _in_thread(self, drafts: list[Draft], waiting: list[Storing], *, one_by_one: bool) -> None:
        self._is_busy = True
        work = self._append_each if one_by_one else self._append_all
        future = self._loop.run_in_executor(self._broker.pool, work, drafts, waiting)
        future.add_done_callback(lambda done: self._after_thread(done.result()))

    def _append_all(self, drafts: list[Draft], waiting: list[Storing]) -> list[Callable[[], None]]:
        """Store all with one append that waits for the lock; return what the loop has to do."""
        self.thread_id = threading.get_ident()
        try:
            placed = self._store.append_many(drafts, lock_timeout_s=self._patience_s())
        except StoreLockedError as locked:
            busy = _busy(locked)
            return [lambda: _fail_all(waiting, busy)]
        except Exception:
            return self._append_each(drafts, waiting)
        finally:
            self.thread_id = 0
        return [lambda: self._finish(drafts, waiting, placed)]

    def _append_each(self, drafts: list[Draft], waiting: list[Storing]) -> list[Callable[[], None]]:
        """Store request by request, so that only those fail that cannot be stored."""
        self.thread_id = threading.get_ident()
        results: list[Callable[[], None]] = []
        at = 0
        for storing in waiting:
            own = drafts[at : at + storing.count]
            at += storing.count
            results.append(self._append_one(own, storing))
        self.thread_id = 0
        return results

    def _append_one(self, drafts: list[Draft], storing: Storing) -> Callable[[], None]:
        try:
            placed = self._store.append_many(drafts, lock_timeout_s=self._patience_s())
        except StoreLockedError as locked:
            busy = _busy(locked)
            return lambda: storing.failed(busy)
        except Exception as failure:
            cause = failure
            return lambda: storing.failed(cause)
        return lambda: self._finish(drafts, [storing], placed)

    def _after_thread(self, results: list[Callable[[], None]]) -> None:
        for result in results:
            result()
        self._is_busy = False
        self._refuse_late()
        if self._waiting:
            self._turn()
        else:
            self._tell_idle()

    def _tell_idle(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.set_result(None)

    def _patience_s(self) -> float | None:
        """Return how long a send waits for another who has the lock; None leaves it to the store.

        A client that gave up sends again: so it must not be stored after that.
        """
        settings = self._broker.settings
        if not settings.broker_fast_failure_enable:
            return None
        return settings.wait_time_mills_in_send_queue / 1000

    def _refuse_late(self) -> None:
        """Refuse what waited for too long behind a thread."""
        since_s, self._since_s = self._since_s, []
        patience_s = self._patience_s()
        if patience_s is None:
            return
        late = bisect_left(since_s, self._loop.time() - patience_s)
        if late:
            refused, self._waiting = self._waiting[:late], self._waiting[late:]
            self._drafts = self._drafts[sum(storing.count for storing in refused) :]
            remark = f"{_BUSY}, {late} sends waited for more than {patience_s:g} s"
            _fail_all(refused, RefusedError(ResponseCode.SYSTEM_BUSY, remark))

    def _finish(
        self,
        drafts: list[Draft],
        waiting: list[Storing],
        placed: Sequence[PlacedOne],
    ) -> None:
        at = 0
        for storing in waiting:
            count = storing.count
            try:
                storing.stored(placed[at : at + count])
            except Exception:  # what was stored is stored; only this answer is lost
                log.exception("an answer to a send failed")
            at += count
        for connection in {storing.connection for storing in waiting}:
            if connection is not None:
                connection.flush()
        pulls = self._broker.waiting_pulls
        if pulls.is_any:
            pulls.arrived({draft.queue for draft in drafts})


class _Awaited:
    """Messages for whose storing somebody awaits."""

    connection = None

    def __init__(self, count: int, future: asyncio.Future[Sequence[PlacedOne]]) -> None:
        self.count, self._future = count, future

    def stored(self, placed: Sequence[PlacedOne]) -> None:
        if not self._future.done():
            self._future.set_result(placed)

    def failed(self, cause: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(cause)


def _fail_all(waiting: list[Storing], cause: Exception) -> None:
    for storing in waiting:
        storing.failed(cause)


def _busy(cause: StoreLockedError) -> RefusedError:
    return RefusedError(ResponseCode.SYSTEM_BUSY, f"{_BUSY}: {cause}")
