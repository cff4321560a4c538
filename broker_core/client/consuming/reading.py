"""Pulling one queue: one pull at a time, held by the broker until messages come.

P1  No more is asked for than the buffer has room for; without room nothing is pulled.
P2  A broker that is lost, or refuses, is asked again after a while, for as long as the queue is
    ours.
P3  A slave is asked when the master says so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from rocketpy.broker_core.client.consuming.process_queue import ProcessQueue
from rocketpy.broker_core.client.consuming.pulls import (
    HEARTBEAT_WANTED,
    HELD_LATE_S,
    HELD_S,
    Pull,
    PullAnswer,
    pull_answer,
)
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.directory import MASTER
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError

log = logging.getLogger(__name__)

LOCK_LIFE_S = 30.0  # after which a lock that was not renewed does not count, as Apache has it
_LOST_S = 1.0  # until a broker that was lost is asked again
_REFUSED_S = 3.0
_UNKNOWN_S = 0.2  # after a heartbeat


class QueuePuller:
    """Fills the buffer of a queue that is ours. Used in one loop."""

    def __init__(
        self,
        session: Session,
        terms: GroupTerms,
        process: ProcessQueue,
        *,
        arrived: Callable[[QueuePuller], None],
    ) -> None:
        """Pull nothing yet; `arrived` is called after each pull that brought something."""
        self._session, self._terms, self._arrived = session, terms, arrived
        self.queue: MessageQueue = process.queue
        self.process = process
        self.locked_s: float | None = None  # when the broker last said that the queue is ours
        self._replaced: list[ProcessQueue] = []  # of which handlers may still have messages
        self._broker_id = MASTER
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<reader of {self.process!r}>"

    def start(self) -> None:
        """Pull from now on."""
        if self._task is None:
            self._task = self._session.run(self._run(), f"pulls of {self.queue}")

    def stop(self) -> None:
        """Pull nothing more; what is here stays."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def restart(self, queue_offset: int) -> None:
        """Forget what is here, and pull on from an offset."""
        is_pulling = self._task is not None
        self.stop()
        self._replace(queue_offset)
        if is_pulling:
            self.start()

    def note_done(self) -> None:
        """Take up that something is done, locked or paused no more: there may be room."""
        self._changed.set()

    def is_locked(self, now_s: float) -> bool:
        """Whether messages may be handed out in order: the broker keeps others away."""
        if not self._terms.is_locking:
            return True
        return self.locked_s is not None and now_s - self.locked_s < LOCK_LIFE_S

    @property
    def out(self) -> int:
        """How many messages are handed out, those of before a restart included."""
        self._replaced = [each for each in self._replaced if each.out]
        return sum(each.out for each in (self.process, *self._replaced))

    def take(self, most: int, now_s: float) -> list[ReceivedMessage]:
        """Hand out messages; in order none beside what was handed out before a restart."""
        if not self.is_locked(now_s) or (self._terms.is_orderly and self.out):
            return []
        return self.process.take(most, now_s)

    async def wait_until_idle(self) -> None:
        """Wait until nothing is handed out."""
        while self.out:
            self._changed.clear()
            await self._changed.wait()

    def _replace(self, queue_offset: int) -> None:
        old = self.process
        old.drop()
        self._replaced.append(old)
        self.process = ProcessQueue(
            self.queue, queue_offset, limits=old.limits, is_orderly=old.is_orderly
        )
        self.process.is_paused = old.is_paused

    # --- the loop ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self.process.is_dropped:
            most = min(self.process.room, self._terms.pull_messages)
            if not most or not self.is_locked(time.monotonic()):
                self._changed.clear()
                await self._changed.wait()
                continue
            try:
                answer = await self._pull(most)
            except (NoBrokerError, ServerUnreachableError) as error:
                log.info("%s is not read for the moment: %s", self.queue, error)
                self._broker_id = MASTER
                await asyncio.sleep(_LOST_S)
            except ServerRefusedError as error:
                await self._refused(error)
            except RocketPyError:
                log.exception("what %s gave cannot be read", self.queue)
                await asyncio.sleep(_REFUSED_S)
            else:
                self._take(answer)

    async def _pull(self, most: int) -> PullAnswer:
        process, terms = self.process, self._terms
        pull = Pull(
            group=terms.group,
            queue=self.queue,
            queue_offset=process.next_offset,
            most=most,
            held_s=HELD_S,
            subscription=terms.subscriptions[self.queue.topic],
            says_filter=not terms.is_push,
        )
        broker, command = self.queue.broker, pull.command()
        if self._broker_id == MASTER:
            said = await self._session.try_broker(broker, command, timeout_s=HELD_LATE_S)
        else:
            address = await self._session.broker_address(broker, broker_id=self._broker_id)
            said = await self._session.ask_address(address, command, timeout_s=HELD_LATE_S)
        return pull_answer(pull, said)

    def _take(self, answer: PullAnswer) -> None:
        self._broker_id = answer.broker_id
        process = self.process
        if answer.is_moved:
            log.warning(
                "%s, which has %d to %d, is read on at %d instead of %d: its broker says so",
                *(self.queue, answer.first, answer.end, answer.next_offset, process.next_offset),
            )
        if answer.is_moved and answer.next_offset < process.next_offset:
            self._replace(answer.next_offset)  # a queue that became shorter, or a reset
            return
        process.put(answer.messages, answer.next_offset)
        if answer.messages:
            self._arrived(self)

    async def _refused(self, error: ServerRefusedError) -> None:
        self._broker_id = MASTER
        if error.code in HEARTBEAT_WANTED:
            log.info("%s: %s", self.queue, error)
            await self._session.beat()
            await asyncio.sleep(_UNKNOWN_S)
        else:
            log.warning("%s is not read for the moment: %s", self.queue, error)
            await asyncio.sleep(_REFUSED_S)
