"""A push consumer: messages are handed to a function as they come.

C1  A message counts as done only after its handler returned, or after its broker took it back.
    So each is delivered at least once, and may come twice.
C2  At most `threads` handlers run at once; what waits for them is bounded by the buffers.
C3  What a handler raises is not lost and ends nothing: the message is tried again later.
C4  A handler that does not end holds up its queue no longer than its time-out: then its message is
    sent back. Not in order, where nothing may pass it.
C5  close() ends within its time. What a handler has not ended by then comes again, elsewhere.
    Called by a handler, it returns at once, and the rest follows when that handler has ended.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType

from rocketpy.broker_core.client.consuming.defaults import CLOSE_S
from rocketpy.broker_core.client.consuming.handler_threads import HandlerThreads
from rocketpy.broker_core.client.consuming.hooks import (
    ConsumeHook,
    HandlerEnd,
    call_ends,
    call_hooks,
)
from rocketpy.broker_core.client.consuming.membership import GroupClient
from rocketpy.broker_core.client.consuming.offset_keeping import OffsetKeeping
from rocketpy.broker_core.client.consuming.process_queue import ProcessQueue
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.reading import QueuePuller
from rocketpy.broker_core.client.consuming.received import ReceivedMessage, read_messages
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.consuming.verdicts import (
    DEAD_LETTER_LEVEL,
    MOST_TRIES,
    HandledMessage,
    Later,
    MessageFate,
    outcomes,
    verdict_of,
)
from rocketpy.broker_core.client.session import ServerRequest, Session
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.service import Reply
from rocketpy.broker_core.protocol.bodies.consuming import DirectlyConsumed
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.reading import ConsumeDirectly

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 60.0  # for handlers that do not end
_LOCAL_RETRY_S = (
    5.0  # after which what could not be sent back is tried again here, as Apache has it
)
_handled_for: ContextVar[PushConsumer | None] = ContextVar("_handled_for", default=None)
Handler = Callable[..., object]  # of a message, or of a list of them; may be a coroutine function


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerTerms:
    """How a handler is called. `batch` is None for one message, not in a list."""

    threads: int = 20
    batch: int | None = None
    most_tries: int | None = None  # 16, or in order without an end
    suspend_s: float = 1.0  # in order, after a failure
    timeout_s: float | None = 900.0  # after which a message is sent back though its handler runs


class PushConsumer:
    """Reads queues of a group and hands messages to a handler. Used in one loop."""

    def __init__(
        self,
        session: Session,
        terms: GroupTerms,
        keeping: OffsetKeeping,
        handler: Handler,
        *,
        calling: HandlerTerms | None = None,
        hooks: Sequence[ConsumeHook] = (),
    ) -> None:
        self._session, self._terms, self._handler, self._hooks = session, terms, handler, hooks
        self._calling = calling or HandlerTerms()
        self._calls = QueueCalls(session)
        self._member = GroupClient(
            session,
            terms,
            keeping,
            arrived=self._arrived,
            handlers={RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly},
        )
        self._threads: HandlerThreads | None = None
        if not _is_async(handler):
            self._threads = HandlerThreads(f"rocketpy-{terms.group}", self._calling.threads)
        self._ready: OrderedDict[QueuePuller, None] = OrderedDict()  # in turns
        self._timers: dict[QueuePuller, asyncio.TimerHandle] = {}
        self._running = 0
        self._watching: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<consumer of {self._terms.group} with {len(self.queues)} queues>"

    async def __aenter__(self) -> PushConsumer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def client_id(self) -> str:
        """How brokers call this client."""
        return self._session.client_id

    @property
    def is_closed(self) -> bool:
        """Whether it has left its group."""
        return self._closing is not None and self._closing.done()

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it reads now."""
        return tuple(sorted(map(self._terms.names.show_queue, self._member.held.readers)))

    @property
    def buffered(self) -> int:
        """How many messages were pulled and are not done."""
        return sum(len(each.process) for each in self._member.held.readers.values())

    def positions(self) -> dict[MessageQueue, int]:
        """Return where the group reads on in the queues that it reads now."""
        return self._terms.names.show_queues(self._member.held.positions())

    async def start(self) -> None:
        """Join the group, and hand out messages from now on; as GroupClient.join()."""
        await self._member.join()
        if self._calling.timeout_s is not None and not (
            self._terms.is_orderly or self._terms.is_broadcasting
        ):
            work = self._send_back_overdue(self._calling.timeout_s)
            self._watching = self._session.run(work, f"time-outs of {self._terms.group}")

    async def commit(self) -> None:
        """Commit all that is done now; it happens by itself every few seconds."""
        await self._member.held.commit()

    async def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Read queues from other offsets on, those of them that it reads now; commit these."""
        await self._member.held.reset(self._terms.names.wrap_queues(offsets))

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Let handlers end, commit, leave the group. Closing twice is fine.

        A handler that calls it does not wait: it would wait for itself.
        """
        if self._closing is None:
            name = f"closing of {self._terms.group}"
            self._closing = self._session.run(self._leave(timeout_s), name)
        if _handled_for.get() is not self:
            await asyncio.wait([self._closing])
            if not self._closing.cancelled():  # by the client, which was closed meanwhile
                self._closing.result()

    async def _leave(self, timeout_s: float) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if not await self._member.leave(timeout_s):
            log.warning(
                "%s: handlers still run after %g s; their messages come again",
                *(self._terms.group, timeout_s),
            )
        for timer in self._timers.values():
            timer.cancel()
        if self._threads is not None:
            self._threads.close()

    # --- handing out ------------------------------------------------------------------------------

    def _arrived(self, reader: QueuePuller) -> None:
        self._ready[reader] = None
        self._hand_out()

    def _hand_out(self) -> None:
        """Start handlers, queue by queue, while there are messages and not too many run."""
        most = self._calling.batch or 1
        if self._closing is not None or self._session.is_closed:
            return
        while self._running < self._calling.threads and self._ready:
            reader, _ = self._ready.popitem(last=False)
            now_s = time.monotonic()
            process = reader.process
            taken = reader.take(most, now_s)
            if taken:
                self._ready[reader] = None
                self._running += 1
                work = self._consume(reader, process, taken)
                self._session.run(work, f"consuming of {reader.queue}")
            else:
                self._come_back(reader, process.next_due_s(), now_s)

    def _come_back(self, reader: QueuePuller, due_s: float | None, now_s: float) -> None:
        """Look at a queue again when it has something to hand out; one timer for each queue."""
        timer = self._timers.pop(reader, None)
        if timer is not None:
            timer.cancel()
        if due_s is not None and due_s > now_s:
            loop = asyncio.get_running_loop()
            self._timers[reader] = loop.call_later(due_s - now_s, self._arrived, reader)

    async def _consume(
        self, reader: QueuePuller, process: ProcessQueue, messages: list[ReceivedMessage]
    ) -> None:
        _handled_for.set(self)  # for this task, and for the thread of its handler
        try:
            damaged = [each for each in messages if each.damage]
            if damaged:
                await self._give_up(process, damaged)
                messages = [each for each in messages if not each.damage]
            if messages:
                verdict = await self._call(messages)
                await self._act(process, messages, verdict)
        except (Exception, asyncio.CancelledError):  # a coroutine may have cancelled itself
            if self._closing is None and not self._session.is_closed:
                log.exception("%s: messages of %s come again", self._terms.group, reader.queue)
            process.again(messages, time.monotonic() + _LOCAL_RETRY_S)
        finally:
            self._running -= 1
            reader.note_done()
            self._arrived(reader)

    async def _call(self, messages: Sequence[ReceivedMessage]) -> Later | None:
        """Return what the handler says of messages."""
        shown = self._terms.names.show_messages(messages)
        try:
            return verdict_of(await self._handled(shown))
        except Exception:
            first = messages[0]
            log.exception(
                "%s: the handler failed with %s/%d; tried again later",
                *(self._terms.group, first.queue, first.queue_offset),
            )
            return Later()

    async def _handled(self, shown: list[ReceivedMessage]) -> object:
        """Return what the handler returns; hooks see it."""
        argument = shown[0] if self._calling.batch is None else shown
        group = self._terms.names.show(self._terms.group)
        ends = call_hooks(self._hooks, lambda hook: hook.handling(group, shown))
        end = HandlerEnd(is_done=False)
        try:
            if self._threads is None:
                returned = await self._handler(argument)  # type: ignore[misc]
            else:
                returned = await self._threads.call(lambda: self._handler(argument))
            end = HandlerEnd(verdict_of(returned) is None)
        except BaseException as error:
            end = HandlerEnd(is_done=False, error=error)
            raise
        finally:
            call_ends(ends, end)
        return returned

    # --- what comes of it -------------------------------------------------------------------------

    async def _act(
        self, process: ProcessQueue, messages: list[ReceivedMessage], verdict: Later | None
    ) -> None:
        """Do what the verdict says; then the messages are done, or wait to be tried again."""
        if verdict is None or process.is_dropped:  # of a dropped queue another gets them, too
            process.done(messages)
            return
        found = outcomes(
            [each for each in messages if process.is_out(each)],  # not those that were overdue
            verdict,
            is_orderly=self._terms.is_orderly,
            is_broadcasting=self._terms.is_broadcasting,
            most_tries=self._calling.most_tries,
        )
        now_s = time.monotonic()
        sent_back = [each for each in found if each.fate is MessageFate.SEND_BACK]
        results = await asyncio.gather(*map(self._send_back, sent_back))
        failed = [each for each, is_sent in zip(sent_back, results, strict=True) if not is_sent]
        suspended = [each for each in found if each.fate is MessageFate.SUSPEND]
        for lost in (each.message for each in found if each.fate is MessageFate.LOSE):
            log.warning("%s: lost, as it broadcasts: %s", self._terms.group, lost.msg_id)
        again = [each.message for each in (*failed, *suspended)]
        kept = {each.queue_offset for each in again}
        process.done([each for each in messages if each.queue_offset not in kept])
        if again:
            said_s = verdict.suspend_s
            suspend_s = self._calling.suspend_s if said_s is None else said_s
            process.again(again, now_s + (_LOCAL_RETRY_S if failed else suspend_s))

    async def _give_up(self, process: ProcessQueue, damaged: list[ReceivedMessage]) -> None:
        """Have messages that cannot be read among the dead letters: no handler sees them."""
        for each in damaged:
            log.error("%s/%d: %s", each.queue, each.queue_offset, each.damage)
        await self._act(process, damaged, Later(DEAD_LETTER_LEVEL))

    async def _send_back(self, outcome: HandledMessage) -> bool:
        message = outcome.message
        most_tries = self._calling.most_tries
        try:
            await self._calls.send_back(
                self._terms.group,
                message,
                delay_level=outcome.delay_level,
                most_tries=MOST_TRIES if most_tries is None else most_tries,
            )
        except RocketPyError as error:
            log.warning("%s is tried again here, not sent back: %s", message.msg_id, error)
            return False
        return True

    async def _send_back_overdue(self, timeout_s: float) -> None:
        """Look now and then for handlers that do not end, until cancelled."""
        while True:
            await asyncio.sleep(min(_LOOK_EVERY_S, timeout_s / 2))
            for reader in [*self._member.held.readers.values()]:
                process = reader.process
                for message in process.overdue(time.monotonic() - timeout_s):
                    log.warning(
                        "%s: the handler has %s/%d for more than %g s; sent back",
                        *(self._terms.group, reader.queue, message.queue_offset, timeout_s),
                    )
                    if await self._send_back(HandledMessage(message, MessageFate.SEND_BACK)):
                        process.done((message,))
                        reader.note_done()

    async def _consume_directly(self, request: ServerRequest) -> Reply | None:
        """Have the handler called with a message that a tool names; nothing else comes of it."""
        asked = ConsumeDirectly.decode(request.command.fields)
        if asked.consumer_group != self._terms.group:
            return None
        queue = MessageQueue(asked.topic or "", asked.broker_name or "", 0)
        (message,) = read_messages(bytes(request.command.body), queue)
        began_s = time.monotonic()
        verdict = await self._call([message])
        result = DirectlyConsumed(
            consume_result="CR_SUCCESS" if verdict is None else "CR_LATER",
            order=self._terms.is_orderly,
            spent_time_mills=int((time.monotonic() - began_s) * 1000),
        )
        return Reply(body=result.encode())


def _is_async(handler: Handler) -> bool:
    call = getattr(handler, "__call__", None)  # noqa: B004  an object may be a handler
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
