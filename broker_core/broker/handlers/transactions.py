"""The ends of transactions, as producers tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.transactions import EndTransaction
from rocketpy.broker_core.transactions.ending import TransactionEnd, TransactionOutcome

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_OUTCOMES = {int(outcome): outcome for outcome in TransactionOutcome}


async def end(broker: Broker, request: EndTransaction, call: Call) -> Reply | None:
    """Answer END_TRANSACTION (37): commit, roll back, or leave open."""
    del call
    outcome = _OUTCOMES.get(request.commit_or_rollback)
    if outcome is None:
        return None  # as EndTransactionProcessor, which logs it
    told = TransactionEnd(
        producer_group=request.producer_group,
        queue_offset=request.tran_state_table_offset,
        physical_offset=request.commit_log_offset,
        outcome=outcome,
        is_answer=bool(request.from_transaction_check),
    )
    ending = await broker.transactions.end(told)
    if ending.refusal is not None:
        remark = ending.refusal.remark or "the transaction cannot be ended any more"
        raise RefusedError(ending.refusal.code, remark)
    return Reply(ResponseCode.SUCCESS)
