"""Transactions of a broker: their ends collected and stored, open ones asked for.

Ends that arrive while others are being stored are stored together by the next append. The rules
are in transactions/.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import LeaseHeldError, LeaseLostError
from rocketpy.broker_core.message import Message, offset_id
from rocketpy.broker_core.property_names import PRODUCER_GROUP, UNIQ_KEY
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.transactions import CheckTransactionState
from rocketpy.broker_core.transactions.checker import HalfPosition, TransactionChecker
from rocketpy.broker_core.transactions.ending import Ending, TransactionEnd
from rocketpy.broker_core.transactions.service import Transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

_TELL_EVERY_S = 60.0


class TransactionChecks:
    """Ends transactions, and asks for those that nobody ends. Used in the loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = TransactionSettings(
            timeout_ms=broker.settings.transaction_timeout,
            check_max=broker.settings.transaction_check_max,
            check_interval_ms=broker.settings.transaction_check_interval,
        )
        self._transactions = Transactions(broker.store, settings)
        self._checker = TransactionChecker(broker.store, settings, self._ask_later)
        self._ends: list[tuple[TransactionEnd, asyncio.Future[Ending]]] = []
        self._is_ending = False
        self._told_of: dict[str, float] = {}  # groups without a producer, and when to say so again
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Ask for open transactions from now on, every transactionCheckInterval."""
        self._spawn(self._check_for_ever())

    async def stop(self) -> None:
        """Ask no more; what is being stored is finished."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self, told: TransactionEnd) -> Ending:
        """End a transaction; done when its messages are stored."""
        future: asyncio.Future[Ending] = self._broker.loop.create_future()
        self._ends.append((told, future))
        if not self._is_ending:
            self._is_ending = True
            self._spawn(self._end_collected())
        return await future

    async def _end_collected(self) -> None:
        try:
            while self._ends:
                ends, self._ends = self._ends, []
                try:
                    endings = await self._broker.in_pool(self._end_all, [told for told, _ in ends])
                except Exception as cause:
                    _fail(ends, cause)
                    continue
                for (_, future), ending in zip(ends, endings, strict=True):
                    if not future.done():
                        future.set_result(ending)
        finally:
            self._is_ending = False

    def _end_all(self, ends: Sequence[TransactionEnd]) -> Sequence[Ending]:
        endings = self._transactions.end_all(ends)
        self._broker.acknowledge()
        return endings

    async def _check_for_ever(self) -> None:
        broker = self._broker
        while True:
            await asyncio.sleep(broker.settings.transaction_check_interval / 1000)
            try:
                await broker.in_pool(self._checker.run_round, broker.clock.now_ms())
            except (LeaseHeldError, LeaseLostError) as cause:
                log.info("another program asks for open transactions: %s", cause)
            except Exception:
                log.exception("asking for open transactions failed, trying again")

    def _ask_later(self, message: Message, position: HalfPosition) -> None:
        """Have a producer asked; called by a thread of the pool."""
        self._broker.loop.call_soon_threadsafe(self._ask, message, position)

    def _ask(self, message: Message, position: HalfPosition) -> None:
        group = message.properties.get(PRODUCER_GROUP, "")
        connection = self._broker.clients.some_producer(group)
        if connection is None:
            self._tell_of_absent(group)
            return
        unique_key = message.properties.get(UNIQ_KEY)
        header = CheckTransactionState(
            topic=message.topic,
            tran_state_table_offset=position.queue_offset,
            commit_log_offset=position.physical_offset,
            msg_id=unique_key,
            transaction_id=unique_key,
            offset_msg_id=offset_id(message.store_host, position.physical_offset),
            bname=self._broker.settings.broker_name,
        )
        command = RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, header.encode())
        connection.send(command, encode_record(message))

    def _tell_of_absent(self, group: str) -> None:
        """Warn that a group cannot be asked: once a minute, however many transactions it has."""
        now_s = self._broker.loop.time()
        if now_s >= self._told_of.get(group, 0.0):
            self._told_of[group] = now_s + _TELL_EVERY_S
            log.warning("no producer of group %s can be asked for its transactions", group)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._broker.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _fail(ends: list[tuple[TransactionEnd, asyncio.Future[Ending]]], cause: Exception) -> None:
    for _, future in ends:
        if not future.done():
            future.set_exception(cause)
