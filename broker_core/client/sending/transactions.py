"""Transactions: a message that consumers see only if what its sender does besides it succeeds.

X1  A half message is stored first; nobody sees it. Then its sender does its work, and commits or
    rolls back: an answer says that the broker did so.
X2  A transaction whose end the broker does not hear of is asked for: of any client of the same
    group, by a function that looks whether the work was done (the checker).
X3  The end is told once. Told twice, a commit could store the message twice.
X4  A half message whose answer was lost may be stored, and so is the one sent in its place. Each
    has a unique key of its own; who sent them rolls back all but the last without asking its
    checker, which would commit both. Another process of the group does not know of them.
X5  No checker is asked for a transaction that has not begun yet, or that could not begin.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import TracebackType

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.consuming.handler_threads import HandlerThreads
from rocketpy.broker_core.client.consuming.received import ReceivedMessage, read_messages
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.heartbeats import ClientGroups
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.client.sending.chains import Selector
from rocketpy.broker_core.client.sending.producer import AsyncProducer
from rocketpy.broker_core.client.session import Answering, ServerRequest
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.errors import MessageRefusedError, RocketPyError
from rocketpy.broker_core.message import parse_offset_id
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.service import Reply
from rocketpy.broker_core.property_names import PRODUCER_GROUP, TRANSACTION_PREPARED
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.transactions import (
    CheckTransactionState,
    EndTransaction,
)

log = logging.getLogger(__name__)

# Whether the work of a half message was done; None if that is not known yet.
Checker = Callable[[ReceivedMessage], "bool | Awaitable[bool | None] | None"]
# The receipt of a half message, how its transaction ended, and whether a broker had asked for that.
EndListener = Callable[[SendReceipt, "bool | None", bool], None]
_SAFE = "SEND_OK"
_CHECKS_AT_ONCE = 4
_MOST_UNUSED = 10_000  # brokers ask for a half message within minutes
_OUTCOMES: Mapping[bool | None, int] = {
    None: 0,
    True: int(SysFlag.TRANSACTION_COMMIT),
    False: int(SysFlag.TRANSACTION_ROLLBACK),
}


class ProducerTransactions:
    """The transactions of a producer. A part of its session; used in its loop."""

    def __init__(
        self,
        producer: AsyncProducer,
        checker: Checker | None = None,
        *,
        ended: EndListener | None = None,
    ) -> None:
        """Take a producer; `ended` is called with each end that was told to a broker."""
        self._producer, self._checker, self._ended = producer, checker, ended
        self._names = producer.settings.names
        self._threads = HandlerThreads("rocketpy-checker", _CHECKS_AT_ONCE)
        # Of half messages without a transaction: unique key to outcome. None: it is being sent.
        self._unused: dict[str, bool | None] = {}
        producer.session.register(self)

    def groups(self) -> ClientGroups:
        """Return nothing: the producer's group is told by the producer."""
        return ClientGroups()

    def topics(self) -> Collection[str]:
        """Return nothing: topics count as used when they are sent to."""
        return ()

    def handlers(self) -> Mapping[int, Answering]:
        """Return what answers brokers that ask for the end of a transaction."""
        return {RequestCode.CHECK_TRANSACTION_STATE: self._check}

    def close(self) -> None:
        """Let the threads of checkers end."""
        self._threads.close()

    async def begin(
        self, topic: str, draft: MessageDraft, *, select: Selector | None = None
    ) -> SendReceipt:
        """Store a half message; end() ends its transaction.

        Raises:
            as AsyncProducer.send(); then there is no transaction.
        """
        if draft.is_waiting:
            raise MessageRefusedError("a transaction", "its message cannot wait for a time as well")
        group = self._producer.settings.group
        properties = {**draft.properties, TRANSACTION_PREPARED: "true", PRODUCER_GROUP: group}
        sys_flag = int(SysFlag.TRANSACTION_PREPARED)
        half = draft._replace(properties=properties, sys_flag=sys_flag)
        tried: list[str] = []

        def note(uniq_key: str) -> None:
            tried.append(uniq_key)
            self._unused[uniq_key] = None

        try:
            receipt = await self._producer.send(topic, half, select=select, on_try=note)
            tried = [key for key in tried if key != receipt.uniq_key]
            self._unused.pop(receipt.uniq_key, None)
        finally:
            self._give_up(tried)
        if receipt.status != _SAFE:
            await self.end(receipt, False)
            reason = f"its half message is not safe there ({receipt.status}), so it is rolled back"
            raise NoBrokerError(f"a transaction on broker {receipt.broker}", reason)
        return receipt

    async def end(self, receipt: SendReceipt, outcome: bool | None) -> bool:
        """Tell the broker how a transaction ended; return whether it said that it did so.

        If it did not, it asks later: X2. None leaves the transaction open until then.
        """
        _, physical_offset = parse_offset_id(receipt.msg_id)
        request = EndTransaction(
            producer_group=self._producer.settings.group,
            topic=self._names.wrap(receipt.queue.topic),
            tran_state_table_offset=receipt.queue_offset,
            commit_log_offset=physical_offset,
            commit_or_rollback=_OUTCOMES[outcome],
            msg_id=receipt.uniq_key,
            transaction_id=receipt.uniq_key,
            from_transaction_check=False,
            bname=receipt.broker,
        )
        session = self._producer.session
        try:
            if outcome is None:  # to this brokers do not answer
                await session.tell_broker(receipt.broker, command_of(request))
                return False
            await session.ask_broker(receipt.broker, command_of(request))
        except RocketPyError as error:
            log.warning("the end of the transaction %s is not known there: %s", receipt, error)
            return False
        finally:
            if self._ended is not None:
                self._ended(receipt, outcome, False)
        return True

    def _give_up(self, uniq_keys: Sequence[str]) -> None:
        self._unused.update(dict.fromkeys(uniq_keys, False))
        while len(self._unused) > _MOST_UNUSED:
            del self._unused[next(iter(self._unused))]

    async def _check(self, request: ServerRequest) -> Reply | None:
        asked = CheckTransactionState.decode(request.command.fields)
        queue = MessageQueue(asked.topic or "", asked.bname or "", 0)
        (half,) = read_messages(request.command.body, queue)
        if half.properties.get(PRODUCER_GROUP) != self._producer.settings.group:
            return None
        if half.msg_id in self._unused:
            outcome = self._unused[half.msg_id]
        elif self._checker is not None:
            outcome = await self._outcome(self._checker, half)
        else:
            log.warning("a broker asks for the transaction %s: connect with a checker", half.msg_id)
            return None
        answer = EndTransaction(
            producer_group=self._producer.settings.group,
            topic=half.topic,
            tran_state_table_offset=asked.tran_state_table_offset,
            commit_log_offset=asked.commit_log_offset,
            commit_or_rollback=_OUTCOMES[outcome],
            msg_id=half.msg_id,
            transaction_id=asked.transaction_id,
            from_transaction_check=True,
            bname=asked.bname,
        )
        await self._producer.session.tell_address(request.address, command_of(answer))
        if self._ended is not None:
            where = MessageQueue(half.topic, asked.bname or "", half.queue_id)
            place = half.queue_offset, half.offset_msg_id, half.msg_id, _SAFE
            self._ended(SendReceipt(where, *place), outcome, True)
        return Reply()

    async def _outcome(self, checker: Checker, half: ReceivedMessage) -> bool | None:
        try:
            shown = self._names.show_message(half)
            if inspect.iscoroutinefunction(checker):
                outcome: object = await checker(shown)
            else:
                outcome = await self._threads.call(lambda: checker(shown))
        except Exception:
            log.exception("the checker failed for the transaction %s: asked again", half.msg_id)
            return None
        if outcome is not None and not isinstance(outcome, bool):
            log.error("the checker returned %r: return True, False or None", outcome)
            return None
        return outcome


class AsyncTransaction:
    """A transaction as a block: entering stores the half message, leaving commits it.

    A block that raises is rolled back. In the block commit(), rollback() and leave_open() say
    something else; the first of them counts.
    """

    def __init__(self, transactions: ProducerTransactions, topic: str, draft: MessageDraft,
                 select: Selector | None = None) -> None:  # fmt: skip
        self._transactions, self._topic, self._draft = transactions, topic, draft
        self._select = select
        self._receipt: SendReceipt | None = None
        self._is_ended = False
        self.is_settled = False  # whether the broker said that it did as it was told

    def __repr__(self) -> str:
        return f"<transaction for {self._topic}, {self._receipt or 'not begun'}>"

    @property
    def receipt(self) -> SendReceipt:
        """The receipt of the half message; its `uniq_key` is what a checker gets, too."""
        if self._receipt is None:
            raise MessageRefusedError("a transaction", "it has not begun: use it in `with`")
        return self._receipt

    async def begin(self) -> None:
        """Store the half message."""
        if self._receipt is not None:
            raise MessageRefusedError("a transaction", "it began already: make another one")
        self._receipt = await self._transactions.begin(
            self._topic, self._draft, select=self._select
        )

    async def commit(self) -> None:
        """Have the message delivered."""
        await self.end(True)

    async def rollback(self) -> None:
        """Have the message forgotten."""
        await self.end(False)

    async def leave_open(self) -> None:
        """Leave it open: the broker asks the checker later."""
        await self.end(None)

    async def end(self, outcome: bool | None) -> None:
        """End it, unless that was done before."""
        receipt = self.receipt
        if not self._is_ended:
            self._is_ended = True
            self.is_settled = await self._transactions.end(receipt, outcome)

    async def __aenter__(self) -> AsyncTransaction:
        await self.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.end(error is None)
