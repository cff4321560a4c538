"""The ends of transactions, and asking for them."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.request import Request


class EndTransaction(Request):
    """Commit (8), rollback (12), or not known yet (0)."""

    JAVA = "EndTransactionRequestHeader"
    CODES = (RequestCode.END_TRANSACTION,)

    producer_group: str
    tran_state_table_offset: int  # of the half message in its queue
    commit_log_offset: int
    commit_or_rollback: int
    msg_id: str
    topic: str | None = None
    from_transaction_check: bool | None = None
    transaction_id: str | None = None


class CheckTransactionState(Request):
    """A broker asks a producer what became of a transaction; the body is the half message."""

    JAVA = "CheckTransactionStateRequestHeader"
    CODES = (RequestCode.CHECK_TRANSACTION_STATE,)

    tran_state_table_offset: int
    commit_log_offset: int
    topic: str | None = None
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None


class ResumeCheck(Request):
    """Have a half message checked again that was given up on."""

    JAVA = "ResumeCheckHalfMessageRequestHeader"
    CODES = (RequestCode.RESUME_CHECK_HALF_MESSAGE,)

    topic: str | None = None
    msg_id: str | None = None
