"""A pull consumer: messages are buffered ahead, and given when they are asked for.

C1  What poll() gave counts as done at the next poll(), at commit() and at a close() in order, not
    before. Iterating, a message counts as done when the next one is asked for.
C2  Offsets are committed every few seconds, or by commit() only, as the caller chose.
C3  The buffers are bounded; while they are full, nothing is pulled.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple

from rocketpy.broker_core.client.consuming.defaults import MOST_MESSAGES, POLL_S
from rocketpy.broker_core.client.consuming.errors import QueueNotHeldError
from rocketpy.broker_core.client.consuming.holding import HeldQueues
from rocketpy.broker_core.client.consuming.hooks import (
    ConsumeHook,
    EndOfMessage,
    call_ends,
    call_hooks,
)
from rocketpy.broker_core.client.consuming.membership import GroupClient
from rocketpy.broker_core.client.consuming.offset_keeping import OffsetKeeping
from rocketpy.broker_core.client.consuming.process_queue import ProcessQueue
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.reading import QueuePuller
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.errors import ClientClosedError
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.message_queue import MessageQueue


class OnlyWhenAsked:
    """Keeps offsets as another does, but commits nothing by itself."""

    def __init__(self, keeping: OffsetKeeping) -> None:
        self.really = keeping

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return where the group reads on."""
        return await self.really.committed(queue)

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> list[MessageQueue]:
        """Commit nothing."""
        del offsets
        return []


class _Taken(NamedTuple):
    process: ProcessQueue
    message: ReceivedMessage
    ends: Sequence[EndOfMessage] = ()  # who is told when it is done


class PullConsumer:
    """Gives the messages of its queues when asked. Used in one loop, by one task at a time."""

    def __init__(
        self,
        session: Session,
        terms: GroupTerms,
        keeping: OffsetKeeping,
        *,
        assigned: Collection[MessageQueue] | None = None,
        commits_itself: bool = True,
        hooks: Sequence[ConsumeHook] = (),
    ) -> None:
        """Read nothing yet; `assigned` are queues to read without joining the group."""
        self._terms, self._keeping, self._assigned = terms, keeping, assigned
        self._hooks = hooks
        self._names = terms.names
        self._calls = QueueCalls(session)
        own = keeping if commits_itself else OnlyWhenAsked(keeping)
        self._member: GroupClient | None = None
        if assigned is None:
            self._member = GroupClient(session, terms, own, arrived=self._arrived)
            self._held = self._member.held
        else:
            self._held = HeldQueues(session, terms, own, arrived=self._arrived)
        self._session = session
        self._committing: asyncio.Task[None] | None = None
        self._ready: OrderedDict[QueuePuller, None] = OrderedDict()  # in turns
        self._came = asyncio.Event()
        self._ahead: deque[_Taken] = deque()  # taken from the buffers, for who iterates
        self._given: list[_Taken] = []
        self.is_closed = False

    def __repr__(self) -> str:
        return f"<pull consumer of {self._terms.group} with {len(self.queues)} queues>"

    async def __aenter__(self) -> PullConsumer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(is_done=error is None)

    async def start(self) -> None:
        """Join the group, or take up the queues that were assigned.

        Raises:
            ServerUnreachableError: no name server answers.
            FilterRefusedError: a broker does not understand a filter.
            TopicNotFoundError: there is no such topic, of queues that were assigned.
        """
        if self._member is not None:
            await self._member.join()
            return
        assert self._assigned is not None
        for topic in {each.topic for each in self._assigned}:
            await self._session.route(topic)
        await self._held.gain(self._assigned)
        work = self._held.keep_committing()
        self._committing = self._session.run(work, f"commits of {self._terms.group}")

    async def close(self, *, is_done: bool = True) -> None:
        """Commit what is done, and leave the group; with `is_done` all that was given is done."""
        if self.is_closed:
            return
        self.is_closed = True
        if is_done:
            self._finish_given()
        self._came.set()
        if self._member is not None:
            await self._member.leave(0)
            return
        if self._committing is not None:
            self._committing.cancel()
        await self._held.close(0)

    # --- messages ---------------------------------------------------------------------------------

    async def poll(
        self, timeout_s: float = POLL_S, *, most: int = MOST_MESSAGES
    ) -> list[ReceivedMessage]:
        """Return messages as soon as there are some; none, if none come in time.

        Those that the last poll gave are done with this.

        Raises:
            ClientClosedError: it is closed.
        """
        self._finish_given()
        return self._give(await self._take(most, time.monotonic() + timeout_s))

    def finish(self, count: int) -> None:
        """Take the first messages that poll() gave last as done."""
        self._given, rest = self._given[:count], self._given[count:]
        self._finish_given()
        self._given = rest

    def give_back(self, count: int) -> None:
        """Take back the last messages that poll() gave last, as if it had not given them."""
        first = len(self._given) - count
        self._given, back = self._given[:first], self._given[first:]
        self._ahead.extendleft(reversed(back))

    def __aiter__(self) -> PullConsumer:
        return self

    async def __anext__(self) -> ReceivedMessage:
        self._finish_given()
        while not self.is_closed:
            if not self._ahead:
                self._ahead.extend(await self._take(MOST_MESSAGES, time.monotonic() + POLL_S))
            while self._ahead:
                taken = self._ahead.popleft()
                if not taken.process.is_dropped:
                    return self._give([taken])[0]
        raise StopAsyncIteration

    @property
    def buffered(self) -> int:
        """How many messages were pulled and are not done."""
        return sum(len(each.process) for each in self._held.readers.values())

    def _give(self, taken: list[_Taken]) -> list[ReceivedMessage]:
        """Return messages as a program gets them; they count as given."""
        shown = [self._names.show_message(each.message) for each in taken]
        if self._hooks and shown:
            group = self._names.show(self._terms.group)
            found = call_hooks(self._hooks, lambda hook: hook.polled(group, shown))
            ends = [end for end in found if end is not None]
            taken = [each._replace(ends=ends) for each in taken]
        self._given = taken
        return shown

    def _finish_given(self) -> None:
        given, self._given = self._given, []
        for process, message, ends in given:
            process.done((message,))
            if ends:
                call_ends(ends, self._names.show_message(message))
            reader = self._held.readers.get(process.queue)
            if reader is not None:
                reader.note_done()

    async def _take(self, most: int, deadline_s: float) -> list[_Taken]:
        while True:
            if self.is_closed:
                raise ClientClosedError(repr(self))
            found = self._take_now(most)
            left_s = deadline_s - time.monotonic()
            if found or left_s <= 0:
                return found
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), left_s)
            except asyncio.TimeoutError:
                return []

    def _take_now(self, most: int) -> list[_Taken]:
        found: list[_Taken] = []
        while self._ahead and len(found) < most:
            taken = self._ahead.popleft()
            if not taken.process.is_dropped:
                found.append(taken)
        while self._ready and len(found) < most:
            reader, _ = self._ready.popitem(last=False)
            process = reader.process
            messages = process.take(most - len(found), time.monotonic())
            found.extend(_Taken(process, each) for each in messages)
            if messages:  # it may have more
                self._ready[reader] = None
        return found

    def _arrived(self, reader: QueuePuller) -> None:
        self._ready[reader] = None
        self._came.set()

    # --- offsets ----------------------------------------------------------------------------------

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it reads now."""
        return tuple(sorted(map(self._names.show_queue, self._held.readers)))

    def positions(self) -> dict[MessageQueue, int]:
        """Return where the group reads on in each queue, with all that is done."""
        return self._names.show_queues(self._held.positions())

    async def commit(self) -> list[MessageQueue]:
        """Commit all that was given so far; return the queues whose broker did not take it."""
        self._finish_given()
        failed = await self._keeping.commit(self._held.positions())
        return [self._names.show_queue(each) for each in failed]

    async def seek(self, queue: MessageQueue, queue_offset: int) -> None:
        """Read a queue on from an offset; what was pulled of it is forgotten.

        Raises:
            QueueNotHeldError: the queue is not one of those that it reads now.
        """
        self._reader(queue).restart(queue_offset)

    async def seek_to_time(self, queue: MessageQueue, time_ms: int) -> None:
        """Read a queue on from the first message stored at a time or later."""
        await self.seek(queue, await self._calls.by_time(self._names.wrap_queue(queue), time_ms))

    async def seek_to_first(self, queue: MessageQueue) -> None:
        """Read a queue on from its first message."""
        await self.seek(queue, await self._calls.first(self._names.wrap_queue(queue)))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Read a queue on from its end."""
        await self.seek(queue, await self._calls.end(self._names.wrap_queue(queue)))

    async def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Give nothing of these queues until resume(); they stay this client's."""
        for queue in queues:
            self._reader(queue).process.is_paused = True

    async def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Give messages of these queues again."""
        for queue in queues:
            reader = self._reader(queue)
            reader.process.is_paused = False
            self._arrived(reader)

    def _reader(self, queue: MessageQueue) -> QueuePuller:
        reader = self._held.readers.get(self._names.wrap_queue(queue))
        if reader is None:
            raise QueueNotHeldError(str(queue), ", ".join(map(str, self.queues)))
        return reader
