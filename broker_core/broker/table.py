"""Which handler answers the requests of a code: one line for each."""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.broker.handlers import sending
from rocketpy.broker_core.net.service import Handler
from rocketpy.broker_core.protocol.codes import RequestCode

HANDLERS: Mapping[int, Handler] = {
    # --- messages ---------------------------------------------------------------------------------
    RequestCode.SEND_MESSAGE_V2: Handler(sending.send, None),
    RequestCode.SEND_BATCH_MESSAGE: Handler(sending.send_batch, None),
    # --- offsets ----------------------------------------------------------------------------------
    # --- clients and groups -----------------------------------------------------------------------
    # --- topics -----------------------------------------------------------------------------------
    # --- the broker itself ------------------------------------------------------------------------
}
