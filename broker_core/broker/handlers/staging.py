"""Batches of Spark's sinks: rows staged here, stored together. Only clients of ours ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.staging import (
    AskStaged,
    AskStagedAnswer,
    CommitStaged,
    CommitStagedAnswer,
    DropStaged,
    StageRows,
    StageRowsAnswer,
)
from rocketpy.broker_core.storage.batches.ledger import read_ledger

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def ask(broker: Broker, request: AskStaged, call: Call) -> Reply:
    """Answer ASK_STAGED (9001): the last batch of a writer, and that there is staging."""
    del call
    if request.writer is None:
        return Reply.of(AskStagedAnswer(last=-1))
    ledger = read_ledger(broker.store.root)
    brokers = (ledger.notes.get(request.writer) or {}).get("brokers")
    return Reply.of(
        AskStagedAnswer(last=ledger.last_number(request.writer, request.former), brokers=brokers)
    )


def stage(broker: Broker, request: StageRows, call: Call) -> Reply:
    """Answer STAGE_ROWS (9002): some rows of a task."""
    if broker.store.topics.get(request.topic) is None:
        remark = f"topic[{request.topic}] not exist"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    return Reply.of(StageRowsAnswer(file=broker.staging.add(request, call.command.body)))


def commit(broker: Broker, request: CommitStaged, call: Call) -> Reply:
    """Answer COMMIT_STAGED (9003): all that tasks staged, whole and once."""
    try:
        files = orjson.loads(call.command.body)
    except orjson.JSONDecodeError as cause:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "the body is no JSON") from cause
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "the body is no list of files")
    is_new = broker.staging.commit(
        files,
        writer=request.writer,
        number=request.number,
        former=request.former,
        brokers=request.brokers,
    )
    return Reply.of(CommitStagedAnswer(is_new=is_new))


def drop(broker: Broker, request: DropStaged, call: Call) -> Reply:
    """Answer DROP_STAGED (9004): nothing of a transaction is wanted any more."""
    del call
    broker.staging.drop({request.transaction})
    return Reply()
