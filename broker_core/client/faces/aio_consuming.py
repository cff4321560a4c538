"""Consumers of the client of asyncio: what AsyncClient has of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from rocketpy.broker_core.client.consuming.defaults import MOST_MESSAGES
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.protocol.bodies.heartbeats import EVERYTHING

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rocketpy.broker_core.client.consuming.hooks import ConsumeHook
    from rocketpy.broker_core.client.consuming.opening import ConsumerOptions, ListenOptions
    from rocketpy.broker_core.client.consuming.pull import PullConsumer
    from rocketpy.broker_core.client.consuming.pulls import PullAnswer
    from rocketpy.broker_core.client.consuming.push import Handler, PushConsumer
    from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
    from rocketpy.broker_core.client.consuming.subscriptions import Topics, Wanted
    from rocketpy.broker_core.client.namespaces import Namespace
    from rocketpy.broker_core.client.session import Session
    from rocketpy.broker_core.client.tracing.client_tracing import ClientTracing
    from rocketpy.broker_core.client.tracing.writing import TraceCounts
    from rocketpy.broker_core.message_queue import MessageQueue

log = logging.getLogger(__name__)

_Close = Callable[[float], Coroutine[Any, Any, None]]  # of how long handlers may take


class AsyncConsuming:
    """Makes consumers, and closes them with the client."""

    def __init__(self, names: Namespace, tracing: ClientTracing | None) -> None:
        self._names, self._tracing = names, tracing
        self._consumers: list[tuple[PushConsumer | PullConsumer, _Close]] = []

    @property
    def session(self) -> Session:
        """The connections of this client."""
        raise NotImplementedError

    @property
    def traced(self) -> TraceCounts | None:
        """How many traces were written, were dropped, and wait; None if it does not trace."""
        return None if self._tracing is None else self._tracing.counts

    @property
    def _queue_calls(self) -> QueueCalls:
        from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls

        return QueueCalls(self.session)

    async def listen(
        self,
        group: str,
        topics: Topics,
        handler: Handler,
        **options: Unpack[ListenOptions],
    ) -> PushConsumer:
        """Hand messages to a handler from now on, until the consumer or the client is closed.

        `topics` is a topic, several, or filters by topic: tags as `"paid || sent"`, or `Sql(...)`.
        The handler is a function, called in up to `threads` threads, or a coroutine function, of
        which as many calls run at once. It gets a message; with `batch`, a list of up to that
        many. It returns when it is done; it says `Later(...)` or raises to have the message again.

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
        from rocketpy.broker_core.client.consuming import opening  # many only send

        session, hooks = self.session, self._consume_hooks()
        consumer = await opening.listen(
            session, group, topics, handler, names=self._names, hooks=hooks, **options
        )
        self._keep(consumer, lambda timeout_s: consumer.close(timeout_s=timeout_s))
        return consumer

    async def consumer(
        self, group: str, topics: Topics | None = None, **options: Unpack[ConsumerOptions]
    ) -> PullConsumer:
        """Return a consumer that gives messages when it is asked: poll(), or `async for`.

        With `topics`, as listen() has them, it shares them with the other clients of its group.
        With `queues` it reads these, whoever else does, and `wanted` is their filter. Without
        `auto_commit` offsets are committed by commit() only.

        Raises:
            as listen(); and TopicNotFoundError: there is no topic of the queues.
        """
        from rocketpy.broker_core.client.consuming import opening

        session, hooks = self.session, self._consume_hooks()
        consumer = await opening.consume(
            session, group, topics, names=self._names, hooks=hooks, **options
        )
        self._keep(consumer, lambda _: consumer.close(is_done=False))
        return consumer

    def _consume_hooks(self) -> Sequence[ConsumeHook]:
        return () if self._tracing is None else self._tracing.consume_hooks(self.session)

    # --- queues by offset -------------------------------------------------------------------------

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic that can be read.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        route = await self.session.route(self._names.wrap(topic), fresh=True)
        return [self._names.show_queue(each) for each in route.readable()]

    async def pull(
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

        Raises:
            NoBrokerError, ServerUnreachableError, ServerRefusedError
        """
        from rocketpy.broker_core.client.consuming import opening

        answer = await opening.pull_at(
            self.session,
            self._names.wrap_queue(queue),
            queue_offset,
            most=most,
            wanted=wanted,
            wait_s=wait_s,
        )
        return answer._replace(messages=self._names.show_messages(answer.messages))

    async def queue_range(self, queue: MessageQueue) -> tuple[int, int]:
        """Return the first offset of a queue, and its end."""
        calls, queue = self._queue_calls, self._names.wrap_queue(queue)
        return await calls.first(queue), await calls.end(queue)

    async def offset_at(self, queue: MessageQueue, time: Time) -> int:
        """Return the offset of the first message of a queue stored at a time or later."""
        queue, time_ms = self._names.wrap_queue(queue), milliseconds("time", time)
        return await self._queue_calls.by_time(queue, time_ms)

    async def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return where a group reads on in a queue; None if it never committed."""
        queue = self._names.wrap_queue(queue)
        return await self._queue_calls.committed(self._names.wrap(group), queue)

    # --- the end ----------------------------------------------------------------------------------

    def _keep(self, consumer: PushConsumer | PullConsumer, close: _Close) -> None:
        self._consumers = [each for each in self._consumers if not each[0].is_closed]
        self._consumers.append((consumer, close))

    async def _close_consumers(self, timeout_s: float) -> None:
        """Close all consumers within a time; half of it is for handlers that run."""
        consumers, self._consumers = self._consumers, []
        closing = [close(timeout_s / 2) for _, close in consumers]
        try:
            await asyncio.wait_for(asyncio.gather(*closing), timeout_s)
        except asyncio.TimeoutError:
            log.warning("consumers of %r are not closed in order: brokers do not answer", self)
