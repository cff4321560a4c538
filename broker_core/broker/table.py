"""Which handler answers the requests of a code: one line for each."""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.broker.handlers import (
    pulling,
    replies,
    sending,
    sending_back,
    transactions,
)
from rocketpy.broker_core.net.service import Handler
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.reading import PullMessage
from rocketpy.broker_core.protocol.requests.sending import (
    RecallMessage,
    SendMessage,
    SendMessageBack,
    SendMessageV1,
)
from rocketpy.broker_core.protocol.requests.transactions import EndTransaction

HANDLERS: Mapping[int, Handler] = {
    # --- messages ---------------------------------------------------------------------------------
    RequestCode.SEND_MESSAGE_V2: Handler(sending.send, None),
    RequestCode.SEND_MESSAGE: Handler(sending.send_old, None),
    RequestCode.SEND_BATCH_MESSAGE: Handler(sending.send_batch, None),
    RequestCode.CONSUMER_SEND_MSG_BACK: Handler(
        sending_back.send_back, SendMessageBack, blocks=True
    ),
    RequestCode.RECALL_MESSAGE: Handler(sending_back.recall, RecallMessage),
    RequestCode.SEND_REPLY_MESSAGE: Handler(replies.reply_v1, SendMessageV1),
    RequestCode.SEND_REPLY_MESSAGE_V2: Handler(replies.reply, SendMessage),
    RequestCode.END_TRANSACTION: Handler(transactions.end, EndTransaction),
    RequestCode.PULL_MESSAGE: Handler(pulling.pull, PullMessage),
    # --- offsets ----------------------------------------------------------------------------------
    # --- clients and groups -----------------------------------------------------------------------
    # --- topics -----------------------------------------------------------------------------------
    # --- the broker itself ------------------------------------------------------------------------
}
