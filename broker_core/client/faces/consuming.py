"""Consumers of the client that blocks: what BlockingClient has of them, and what it returns.

Handlers that are functions run in threads of their own, coroutine functions in the client's loop.
A forked child cannot use a consumer of its parent.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from rocketpy.broker_core.client.consuming.defaults import CLOSE_S, MOST_MESSAGES, POLL_S
from rocketpy.broker_core.client.consuming.errors import ForeignConsumerError
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.protocol.bodies.heartbeats import EVERYTHING

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rocketpy.broker_core.client.consuming.opening import ConsumerOptions, ListenOptions
    from rocketpy.broker_core.client.consuming.pull import PullConsumer
    from rocketpy.broker_core.client.consuming.pulls import PullAnswer
    from rocketpy.broker_core.client.consuming.push import Handler, PushConsumer
    from rocketpy.broker_core.client.consuming.received import ReceivedMessage
    from rocketpy.broker_core.client.consuming.subscriptions import Topics, Wanted
    from rocketpy.broker_core.client.faces.aio import AsyncClient
    from rocketpy.broker_core.client.tracing.writing import TraceCounts
    from rocketpy.broker_core.message_queue import MessageQueue

_Result = TypeVar("_Result")


class BlockingConsuming:
    """Makes consumers, and reads queues by offset."""

    def run(self, work: Callable[[AsyncClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Return what a coroutine of the client of asyncio returns."""
        raise NotImplementedError

    @property
    def traced(self) -> TraceCounts | None:
        """How many traces were written, were dropped, and wait; None if it does not trace."""

        async def look(client: AsyncClient) -> TraceCounts | None:
            return client.traced

        return self.run(look)

    def listen(
        self, group: str, topics: Topics, handler: Handler, **options: Unpack[ListenOptions]
    ) -> Listener:
        """Hand messages to a handler from now on, until the listener or the client is closed.

        `topics` is a topic, several, or filters by topic: tags as `"paid || sent"`, or `Sql(...)`.
        The handler gets a message; with `batch`, a list of up to that many. It returns when it is
        done; it says `Later(...)` or raises to have the message again. Up to `threads` run at once.

        With `ordered` each queue is handed out message by message, and a message that fails comes
        again after `suspend_s`, before the others. With `broadcast` every client gets all
        messages, and keeps its offsets in a file, `offsets_path`. `start` is where a group begins
        that never read: `latest`, `earliest`, or a time.

        Raises:
            GroupNameError, RebalanceError, MessageRefusedError: an argument cannot be.
            GroupTakenError: this client has a consumer of the group.
            ServerUnreachableError: no name server answers.
            FilterRefusedError: a broker does not understand a filter.
        """
        work = self.run(lambda client: client.listen(group, topics, handler, **options))
        return Listener(self, work)

    def consumer(
        self, group: str, topics: Topics | None = None, **options: Unpack[ConsumerOptions]
    ) -> PollingConsumer:
        """Return a consumer that gives messages when it is asked: poll(), or `for`.

        With `topics`, as listen() has them, it shares them with the other clients of its group.
        With `queues` it reads these, whoever else does, and `wanted` is their filter. Without
        `auto_commit` offsets are committed by commit() only.

        Raises:
            as listen(); and TopicNotFoundError: there is no topic of the queues.
        """
        return PollingConsumer(
            self, self.run(lambda client: client.consumer(group, topics, **options))
        )

    def queues(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic that can be read."""
        return self.run(lambda client: client.queues(topic))

    def pull(
        self,
        queue: MessageQueue,
        queue_offset: int,
        *,
        most: int = MOST_MESSAGES,
        wanted: Wanted = EVERYTHING,
        wait_s: float = 0.0,
    ) -> PullAnswer:
        """Return messages of a queue from an offset on, and where to read on; commits nothing.

        With `wait_s` the broker waits that long for messages, if there are none.
        """
        return self.run(
            lambda client: client.pull(queue, queue_offset, most=most, wanted=wanted, wait_s=wait_s)
        )

    def queue_range(self, queue: MessageQueue) -> tuple[int, int]:
        """Return the first offset of a queue, and its end."""
        return self.run(lambda client: client.queue_range(queue))

    def offset_at(self, queue: MessageQueue, time: Time) -> int:
        """Return the offset of the first message of a queue stored at a time or later."""
        return self.run(lambda client: client.offset_at(queue, time))

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return where a group reads on in a queue; None if it never committed."""
        return self.run(lambda client: client.committed(group, queue))


class _OfOneProcess:
    """What runs on the loop of the process that made it."""

    def __init__(self, client: BlockingConsuming) -> None:
        self._client, self._pid = client, os.getpid()

    def _run(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        if self._pid != os.getpid():
            raise ForeignConsumerError(repr(self), self._pid)
        return self._client.run(lambda _: work())


class Listener(_OfOneProcess):
    """A consumer that hands messages to a handler. Any thread may use it."""

    def __init__(self, client: BlockingConsuming, consumer: PushConsumer) -> None:
        super().__init__(client)
        self._consumer = consumer

    def __repr__(self) -> str:
        return repr(self._consumer)

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it reads now."""
        return self._consumer.queues

    @property
    def buffered(self) -> int:
        """How many messages were pulled and are not done."""
        return self._consumer.buffered

    def commit(self) -> None:
        """Commit all that is done now; it happens by itself every few seconds."""
        self._run(lambda: self._consumer.commit())

    def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Let handlers end, commit, leave the group. Closing twice is fine."""
        if self._pid == os.getpid() and not self._consumer.is_closed:
            self._run(lambda: self._consumer.close(timeout_s=timeout_s))


class PollingConsumer(_OfOneProcess):
    """A consumer that gives messages when it is asked. Used by one thread at a time."""

    def __init__(self, client: BlockingConsuming, consumer: PullConsumer) -> None:
        super().__init__(client)
        self._consumer = consumer
        self._ahead: deque[ReceivedMessage] = deque()  # polled for who iterates, not given yet
        self._iterated = 0  # given to who iterates, of the last poll

    def __repr__(self) -> str:
        return repr(self._consumer)

    def __enter__(self) -> PollingConsumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(is_done=error is None)

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it reads now."""
        return self._consumer.queues

    def poll(
        self, timeout_s: float = POLL_S, *, most: int = MOST_MESSAGES
    ) -> list[ReceivedMessage]:
        """Return messages as soon as there are some; none, if none come in time.

        Those that the last poll gave are done with this.

        Raises:
            ClientClosedError: it is closed.
        """
        return self._do(lambda: self._consumer.poll(timeout_s, most=most))

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Yield messages without an end; one counts as done when the next is asked for."""
        while not self._consumer.is_closed:
            if self._ahead:
                self._iterated += 1
                yield self._ahead.popleft()
            else:
                self._ahead.extend(self._do(lambda: self._consumer.poll(POLL_S)))

    def _do(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Do something in the loop, which first hears how far who iterates has come."""

        async def told() -> _Result:
            self._tell()
            return await work()

        return self._run(told)

    def _tell(self) -> None:
        """Say which messages of the last poll were iterated over; the last of them is in work."""
        if self._ahead or self._iterated:
            self._consumer.give_back(len(self._ahead))
            self._consumer.finish(max(0, self._iterated - 1))
            self._ahead.clear()
            self._iterated = 0

    def positions(self) -> dict[MessageQueue, int]:
        """Return where the group reads on in each queue, with all that is done."""
        return self._consumer.positions()

    def commit(self) -> list[MessageQueue]:
        """Commit all that was given so far; return the queues whose broker did not take it."""
        return self._do(lambda: self._consumer.commit())

    def seek(self, queue: MessageQueue, queue_offset: int) -> None:
        """Read a queue on from an offset; what was pulled of it is forgotten.

        Raises:
            QueueNotHeldError: the queue is not one of those that it reads now.
        """
        self._do(lambda: self._consumer.seek(queue, queue_offset))

    def seek_to_time(self, queue: MessageQueue, time: Time) -> None:
        """Read a queue on from the first message stored at a time or later."""
        self._do(lambda: self._consumer.seek_to_time(queue, milliseconds("time", time)))

    def seek_to_first(self, queue: MessageQueue) -> None:
        """Read a queue on from its first message."""
        self._do(lambda: self._consumer.seek_to_first(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Read a queue on from its end."""
        self._do(lambda: self._consumer.seek_to_end(queue))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Give nothing of these queues until resume(); they stay this client's."""
        self._do(lambda: self._consumer.pause(queues))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Give messages of these queues again."""
        self._do(lambda: self._consumer.resume(queues))

    def close(self, *, is_done: bool = True) -> None:
        """Commit what is done, and leave the group; with `is_done` all that was given is done."""
        if self._pid == os.getpid() and not self._consumer.is_closed:
            self._do(lambda: self._consumer.close(is_done=is_done))
