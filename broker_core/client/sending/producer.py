"""A producer in a loop.

P1  On return a message is acknowledged by a broker, at least once: without an answer it is sent
    again, to another broker unless its queue is fixed. All copies have the same unique key.
P2  What has no answer yet is limited, in messages and in bytes: who sends more waits.
P3  A send that is cancelled may have been stored or not; the producer works on.

Which queue a message goes to: see queue_choice.py.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rocketpy.broker_core.client.drafts import MessageDraft, WrittenMessage, plain_draft
from rocketpy.broker_core.client.errors import (
    IdentityRefusedError,
    NoBrokerError,
    PermissionRefusedError,
    ServerRefusedError,
)
from rocketpy.broker_core.client.heartbeats import ClientGroups
from rocketpy.broker_core.client.namespaces import NO_NAMESPACE, Namespace
from rocketpy.broker_core.client.parcels import (
    BATCH_BYTES,
    COMPRESS_OVER_BYTES,
    MOST_BYTES,
    PRODUCER_GROUP,
    SendReceipt,
    receipts_of,
    send_command,
    stored_form,
)
from rocketpy.broker_core.client.plain_messages import plain_batches
from rocketpy.broker_core.client.queue_choice import BrokerFaults, QueueTurns, wanted
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.client.sending.chains import OutgoingParcel, Selector, chained, selected
from rocketpy.broker_core.client.sending.hooks import SendHook, SendTry, call_after, call_before
from rocketpy.broker_core.client.sending.in_flight import InFlight
from rocketpy.broker_core.client.session import Answering, Session
from rocketpy.broker_core.errors import MessageRefusedError, RocketPyError
from rocketpy.broker_core.intake.destination import refuse_system_topic
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.property_names import INSTANCE_ID
from rocketpy.broker_core.protocol.bodies.heartbeats import ProducerData
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode

log = logging.getLogger(__name__)

_BIG_BYTES = 64 << 10  # from here on a body is compressed in a thread, not in the loop
_PAUSE_S = 0.2  # before a broker is asked once more
# Refusals after which another broker may take the message, as Apache's producer has it.
_ELSEWHERE = frozenset(
    {ResponseCode.SYSTEM_ERROR, ResponseCode.TOPIC_NOT_EXIST, ResponseCode.NO_PERMISSION}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer sends. `timeout_s` is that of one try; `tries` are all of them.

    `group` is as brokers know it; topics are given as programs of the namespace call them.
    """

    group: str = PRODUCER_GROUP
    names: Namespace = NO_NAMESPACE
    timeout_s: float = 3.0
    tries: int = 3
    compress_over: int | None = COMPRESS_OVER_BYTES
    most_bytes: int = MOST_BYTES
    most_in_flight: int = 4_096
    most_in_flight_bytes: int = 64 << 20


class AsyncProducer:
    """Sends messages to topics of one cluster. A part of a session; used in its loop."""

    def __init__(
        self,
        session: Session,
        settings: ProducerSettings | None = None,
        *,
        hooks: Sequence[SendHook] = (),
    ) -> None:
        self.session, self.settings, self.hooks = session, settings or ProducerSettings(), hooks
        self.in_flight = InFlight(self.settings.most_in_flight, self.settings.most_in_flight_bytes)
        self.faults = BrokerFaults()
        self._names = self.settings.names or None  # to ask it each time takes longer
        self._turns = QueueTurns()
        self._queues: dict[str, tuple[TopicRoute, list[MessageQueue]]] = {}  # of known routes
        session.register(self)

    # --- a part of the session --------------------------------------------------------------------

    def groups(self) -> ClientGroups:
        """Return the group that it sends for."""
        return ClientGroups(producers=(ProducerData(group_name=self.settings.group),))

    def topics(self) -> Collection[str]:
        """Return nothing: topics count as used when they are sent to."""
        return ()

    def handlers(self) -> Mapping[int, Answering]:
        """Return nothing: transactions and requests are parts of their own."""
        return {}

    # --- sending ----------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        draft: MessageDraft,
        *,
        select: Selector | None = None,
        code: RequestCode | None = None,
        on_try: Callable[[str], None] | None = None,
    ) -> SendReceipt:
        """Send one message; a reply has a code of its own.

        With `on_try` each try has a unique key of its own; it gets the key before the try leaves.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was sent.
            NoBrokerError: no broker takes messages for the topic.
            ServerUnreachableError: no answer came; it may be stored nevertheless.
            ServerRefusedError: the broker did not take it.
        """
        if code is None:
            topic, select = self._wrapped(topic, select)
        else:  # replies go to a topic of the brokers' own
            _require_topic(topic)
        parcel = OutgoingParcel([self._written(draft)], select, code, on_try)
        return (await self._deliver(topic, parcel))[0]

    async def begin(
        self, topic: str, draft: MessageDraft, *, select: Selector | None = None
    ) -> asyncio.Task[SendReceipt]:
        """Have one message sent; returns as soon as there is room for it in flight."""
        topic, select = self._wrapped(topic, select)
        parcel = OutgoingParcel([self._written(draft)], select)
        size = parcel.size_bytes
        await self.in_flight.enter(1, size)

        async def go_on() -> SendReceipt:
            try:
                return (await self._try(topic, parcel))[0]
            finally:
                self.in_flight.leave(1, size)

        # Who asked for it has the task and its error: it is not the session's to log.
        return asyncio.get_running_loop().create_task(go_on())

    async def send_many(self, topic: str, drafts: Sequence[MessageDraft]) -> list[SendReceipt]:
        """Send messages in batches; the receipts are in the order of the messages.

        Messages of one sharding key or queue are stored in their order, unless some of them had to
        be sent again. Those that are to wait for their time go one by one.

        Raises:
            as send(): some of them may be stored.
        """
        topic, _ = self._wrapped(topic)
        if self._names is not None:
            drafts = [self._named(draft) for draft in drafts]
        written = WrittenMessage.of_all(drafts, self.settings.most_bytes)
        most = min(BATCH_BYTES, self.settings.most_bytes)
        chains = chained(topic, await self._writable(topic), written, most)
        found = await self._deliver_chains(topic, chains)
        if len(chains) == 1:
            return found[0]  # in their order already
        receipts = {
            id(message): receipt
            for chain, placed in zip(chains, found, strict=True)
            for message, receipt in zip(_messages(chain), placed, strict=True)
        }
        return [receipts[id(message)] for message in written]

    async def send_bodies(self, topic: str, bodies: Sequence[bytes]) -> list[SendReceipt]:
        """As send_many(), of messages that say nothing but their bodies: for less.

        Raises:
            as send(): some of them may be stored.
        """
        most_bytes = self.settings.most_bytes
        is_plain = all(bodies) and max(map(len, bodies), default=0) <= most_bytes
        if self._names is not None or not is_plain or not bodies:
            return await self.send_many(topic, [*map(plain_draft, bodies)])
        topic, _ = self._wrapped(topic)
        await self._writable(topic)  # what cannot be sent at all is not tried in parts
        batches = plain_batches(bodies, min(BATCH_BYTES, most_bytes))
        found = await self._deliver_chains(topic, [[OutgoingParcel(batch)] for batch in batches])
        return found[0] if len(found) == 1 else [each for placed in found for each in placed]

    async def send_oneway(
        self, topic: str, draft: MessageDraft, *, select: Selector | None = None
    ) -> None:
        """Send one message, and wait for no answer: nobody knows whether it was stored.

        Raises:
            as send(), as far as that is known when it leaves.
        """
        topic, select = self._wrapped(topic, select)
        parcel = OutgoingParcel([self._written(draft)], select)
        queue = self._choose(topic, await self._writable(topic), parcel)
        stored = self._stored(parcel) or await self._stored_in_thread(parcel)
        command = send_command(self.settings.group, queue, parcel.messages, stored)
        await self.session.tell_broker(queue.broker, command)

    # --- one parcel -------------------------------------------------------------------------------

    async def _deliver(self, topic: str, parcel: OutgoingParcel) -> list[SendReceipt]:
        count, size = len(parcel.messages), parcel.size_bytes
        if not self.in_flight.try_enter(count, size):
            await self.in_flight.enter(count, size)
        try:
            return await self._try(topic, parcel)
        finally:
            self.in_flight.leave(count, size)

    async def _deliver_chains(
        self, topic: str, chains: Sequence[Sequence[OutgoingParcel]]
    ) -> list[list[SendReceipt]]:
        """Return the receipts of each chain, in the order of its messages."""
        if len(chains) == 1:  # most are so, and need no task
            return [await self._deliver_in_order(topic, chains[0])]
        sends = [asyncio.ensure_future(self._deliver_in_order(topic, chain)) for chain in chains]
        try:
            return await asyncio.gather(*sends)
        except BaseException:
            for send in sends:
                send.cancel()
            await asyncio.gather(*sends, return_exceptions=True)
            raise

    async def _deliver_in_order(
        self, topic: str, chain: Sequence[OutgoingParcel]
    ) -> list[SendReceipt]:
        found: list[SendReceipt] = []
        for parcel in chain:
            found += await self._deliver(topic, parcel)
        return found

    async def _try(self, topic: str, parcel: OutgoingParcel) -> list[SendReceipt]:
        stored, failed_on = self._stored(parcel) or await self._stored_in_thread(parcel), None
        for number in range(1, self.settings.tries + 1):
            queues = self._known_queues(topic) or await self._writable(topic)
            queue = self._choose(topic, queues, parcel, failed_on)
            if queue.broker == failed_on:
                await asyncio.sleep(_PAUSE_S)
            if parcel.on_try is not None:
                parcel.messages = [self._written(parcel.draft)]
                parcel.on_try(parcel.messages[0].uniq_key)
            try:
                receipts = await self._once(queue, parcel, stored, number)
            except (ServerUnreachableError, NoBrokerError, ServerRefusedError) as error:
                failed_on = queue.broker
                if number == self.settings.tries or not self._may_try_again(topic, parcel, error):
                    raise
                log.info("%s: try %d failed: %s", queue, number, error)
            else:
                if self._names is not None:
                    return [self._names.show_receipt(each) for each in receipts]
                return receipts
        raise AssertionError("a try returns or raises")

    async def _once(
        self, queue: MessageQueue, parcel: OutgoingParcel, stored: tuple[bytes, int], number: int
    ) -> list[SendReceipt]:
        command = send_command(self.settings.group, queue, parcel.messages, stored)
        if parcel.code is not None:
            command.code = parcel.code
        sending = self._sending(queue, parcel, number) if self.hooks else None
        began_s = time.monotonic()
        try:
            answer = await self.session.try_broker(
                queue.broker, command, timeout_s=self.settings.timeout_s
            )
            receipts = receipts_of(queue, parcel.messages, answer)
        except RocketPyError as error:
            if not isinstance(error, IdentityRefusedError | PermissionRefusedError):
                self.faults.note_failure(queue.broker, time.monotonic())
            if sending is not None:
                took_s = time.monotonic() - began_s
                call_after(self.hooks, replace(sending, error=error, took_s=took_s))
            raise
        now_s = time.monotonic()
        self.faults.note_answer(queue.broker, now_s - began_s, now_s)
        if sending is not None:
            took_s, said = now_s - began_s, answer.fields
            call_after(
                self.hooks, replace(sending, receipts=receipts, took_s=took_s, answered=said)
            )
        return receipts

    def _sending(self, queue: MessageQueue, parcel: OutgoingParcel, number: int) -> SendTry:
        sending = SendTry(
            group=self.settings.group,
            queue=queue,
            drafts=[message.draft for message in parcel.messages],
            uniq_keys=[message.uniq_key for message in parcel.messages],
            number=number,
            began_ms=time.time_ns() // 1_000_000,
        )
        call_before(self.hooks, sending)
        return sending

    def _may_try_again(self, topic: str, parcel: OutgoingParcel, error: RocketPyError) -> bool:
        if error.retriable:
            return True
        if isinstance(error, IdentityRefusedError | PermissionRefusedError):
            return False  # the rules of a cluster are those of all its brokers
        route = self.session.known_route(topic)
        has_others = route is not None and len(route.broker_names) > 1
        is_for_others = isinstance(error, ServerRefusedError) and error.code in _ELSEWHERE
        return is_for_others and has_others and not parcel.is_fixed

    def _stored(self, parcel: OutgoingParcel) -> tuple[bytes, int] | None:
        """Return the body of the request, and its sysFlag; None if that takes a thread."""
        over = self.settings.compress_over
        if over is not None and len(parcel.draft.body) >= max(over, _BIG_BYTES):
            return None
        return stored_form(parcel.messages, over)

    async def _stored_in_thread(self, parcel: OutgoingParcel) -> tuple[bytes, int]:
        return await asyncio.to_thread(stored_form, parcel.messages, self.settings.compress_over)

    # --- where it goes ----------------------------------------------------------------------------

    def _known_queues(self, topic: str) -> list[MessageQueue] | None:
        """Return the queues that take messages, if the topic's route is known and good."""
        known = self._queues.get(topic)
        is_good = known is not None and known[0] is self.session.known_route(topic)
        return known[1] if known is not None and is_good else None

    async def _writable(self, topic: str) -> list[MessageQueue]:
        known = self._known_queues(topic)
        if known is not None:
            return known
        route = await self.session.route(topic)
        queues = route.writable()
        if not queues:
            route = await self.session.route(topic, fresh=True)
            queues = route.writable()
        if not queues:
            raise NoBrokerError(
                f"topic {topic!r}", "no broker with a master takes messages for it; see its access"
            )
        self._queues[topic] = route, queues
        return queues

    def _choose(
        self,
        topic: str,
        queues: Sequence[MessageQueue],
        parcel: OutgoingParcel,
        failed_on: str | None = None,
    ) -> MessageQueue:
        if parcel.select is not None:
            return selected(parcel.select, queues)
        avoided = self.faults.avoided(time.monotonic())
        if failed_on is not None:
            avoided |= {failed_on}
        return self._turns.next(wanted(topic, queues, parcel.draft), avoided)

    def _wrapped(self, topic: str, select: Selector | None = None) -> tuple[str, Selector | None]:
        """Return a topic as brokers know it, and what chooses among queues of such topics."""
        if self._names is not None:
            topic, select = self._names.wrap(topic), self._names.wrap_selector(select)
        if type(topic) is not str or topic not in self._queues:  # or it was looked at already
            _require_topic(topic)
        return topic, select

    def _named(self, draft: MessageDraft) -> MessageDraft:
        """Return a message that says its namespace, as Apache's producer says it."""
        properties = {**draft.properties, INSTANCE_ID: self.settings.names.name}
        return draft._replace(properties=properties)

    def _written(self, draft: MessageDraft) -> WrittenMessage:
        if self._names is not None:
            draft = self._named(draft)
        return WrittenMessage.of(draft, self.settings.most_bytes)


def _require_topic(topic: str) -> None:
    if not isinstance(topic, str):
        raise MessageRefusedError(f"topic={topic!r}"[:80], "give a str")
    refuse_system_topic(topic)


def _messages(chain: Sequence[OutgoingParcel]) -> list[WrittenMessage]:
    return [message for parcel in chain for message in parcel.messages]
