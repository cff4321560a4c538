"""Sends that wait for their storing, and the answers to them.

The usual answers are put together from bytes: no others are as frequent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import orjson

from rocketpy.broker_core.broker.incoming import Admitted, IncomingBatch
from rocketpy.broker_core.codec.batch_draft import BatchDraft
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.errors import DiskFullError, MessageRefusedError
from rocketpy.broker_core.net.service import Call, RefusedError, Reply, failure
from rocketpy.broker_core.property_names import MSG_REGION, TRACE_ON
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import ONEWAY, VERSION, HeaderKind, RemotingCommand
from rocketpy.broker_core.protocol.requests.sending import SendMessageAnswer
from rocketpy.broker_core.storage.appends import PlacedOne

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_WHERE = b'{"code":0,"extFields":{%%b,"msgId":"%s","queueId":"%%d","queueOffset":"%%d"'
_END = (
    b'},"flag":1,"language":"PYTHON","opaque":%%d,"serializeTypeCurrentRPC":"JSON","version":%d}'
    % VERSION
)
_ANSWER = _WHERE % b"%b%016X" + b',"transactionId":%b' + _END
_BATCH_ANSWER = _WHERE % b"%b" + _END
_JSON = HeaderKind.JSON  # an attribute of an enum is slow to find
_DISK_FULL = (
    "service not available now. It may be caused by one of the following reasons: "
    "the broker's disk is full"
)


class SentOne:
    """One message."""

    __slots__ = ("_admitted", "_broker", "_call", "_command", "_queue_id", "connection")
    count = 1

    def __init__(
        self,
        broker: Broker,
        command: RemotingCommand,
        call: Call,
        queue_id: int,
        admitted: Admitted,
    ) -> None:
        self._broker, self._command, self._call = broker, command, call
        self.connection = call.connection
        self._queue_id, self._admitted = queue_id, admitted

    def stored(self, placed: Sequence[PlacedOne]) -> None:
        """Answer where it is: now, or when it is durable."""
        broker, command = self._broker, self._command
        draft = self._admitted.draft
        broker.stats.sent(draft.queue[0], 1, draft.size)
        if command.flag & ONEWAY:
            return
        if broker.settings.is_sync_flush and waits(command.fields.get("i", "")):
            broker.durability.wait(lambda is_durable: self._answer_later(placed[0], is_durable))
        else:
            self._answer(placed[0], True)

    def _answer_later(self, placed: PlacedOne, is_durable: bool) -> None:
        self._answer(placed, is_durable)
        self.connection.write_parts()  # nobody else sees to it that this is sent

    def failed(self, cause: Exception) -> None:
        """Answer why it was not stored."""
        answer_failure(self._broker, self._call, cause)

    def _answer(self, placed: PlacedOne, is_durable: bool) -> None:
        broker, command, admitted = self._broker, self._command, self._admitted
        if is_durable and command.kind == _JSON and admitted.recall_handle is None:
            header = _ANSWER % (
                broker.answer_fields,
                broker.id_prefix,
                placed.physical_offset,
                self._queue_id,
                placed.queue_offset,
                orjson.dumps(admitted.unique_key),
                command.opaque,
            )
            self.connection.add(_frame(header))
            return
        answer = SendMessageAnswer(
            msg_id=message_id(broker, placed.physical_offset),
            queue_id=self._queue_id,
            queue_offset=placed.queue_offset,
            transaction_id=admitted.unique_key,
            recall_handle=admitted.recall_handle,
        )
        answer_stored(broker, self._call, answer, is_durable)


class SentBatch:
    """A batch of messages, drafted with all others of its turn: see appender.py."""

    def __init__(
        self, broker: Broker, command: RemotingCommand, call: Call, batch: IncomingBatch
    ) -> None:
        self._broker, self._command, self._call = broker, command, call
        self.batch, self._queue_id = batch, batch.head.queue_id
        self._drafts, self.count = list[BatchDraft](), 0
        self.connection = call.connection

    def drafted(self, drafts: list[BatchDraft]) -> None:
        """Take the drafts that are about to be stored."""
        self._drafts, self.count = drafts, len(drafts)

    def stored(self, placed: Sequence[PlacedOne]) -> None:
        """Answer where they are: now, or when they are durable."""
        broker, size = self._broker, sum([draft.size for draft in self._drafts])
        count = sum([draft.count for draft in self._drafts])
        broker.stats.sent(self._drafts[0].queue[0], count, size)
        if self._command.is_oneway:
            return
        ids = b",".join(
            message_ids(broker, draft.starts + first.physical_offset)
            for draft, first in zip(self._drafts, placed, strict=True)
        )
        queue_offset = placed[0].queue_offset
        if broker.settings.is_sync_flush and waits(self._command.fields.get("i", "")):
            broker.durability.wait(lambda durable: self._answer_later(ids, queue_offset, durable))
        else:
            self._answer(ids, queue_offset, True)

    def _answer_later(self, ids: bytes, queue_offset: int, is_durable: bool) -> None:
        self._answer(ids, queue_offset, is_durable)
        self.connection.write_parts()  # nobody else sees to it that this is sent

    def failed(self, cause: Exception) -> None:
        """Answer why nothing was stored."""
        answer_failure(self._broker, self._call, cause)

    def _answer(self, ids: bytes, queue_offset: int, is_durable: bool) -> None:
        broker, command = self._broker, self._command
        if is_durable and command.kind == _JSON:
            fields = broker.answer_fields, ids, self._queue_id, queue_offset
            self.connection.add(_frame(_BATCH_ANSWER % (*fields, command.opaque)))
            return
        answer = SendMessageAnswer(
            msg_id=ids.decode(), queue_id=self._queue_id, queue_offset=queue_offset
        )
        answer_stored(broker, self._call, answer, is_durable)


def _frame(header: bytes) -> bytes:
    """Return the frame of a JSON header without a body."""
    size = len(header)
    return (size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + header


def waits(properties: str) -> bool:
    """Whether a sender waits until its message is durable; it does unless it says no."""
    return "WAIT\x01false" not in properties


def message_id(broker: Broker, physical_offset: int) -> str:
    """Return the id that names this broker and a physical offset in its log."""
    return f"{broker.id_prefix.decode()}{physical_offset:016X}"


def message_ids(broker: Broker, physical_offsets: Ints) -> bytes:
    """Return the ids of many messages, with commas between them: each as message_id()."""
    template = _id_template(broker.id_prefix)
    rows = template.repeat(len(physical_offsets))
    rows["physical_offset"] = physical_offsets
    return rows.tobytes().hex(",", template.itemsize).upper().encode()


@lru_cache(maxsize=16)
def _id_template(prefix: bytes) -> npt.NDArray[np.void]:
    """Return the bytes of an id, with a physical offset to be filled in."""
    host = bytes.fromhex(prefix.decode())
    layout = [("host", f"V{len(host)}"), ("physical_offset", ">i8")]
    return np.array([(host, 0)], layout)


def answer_stored(broker: Broker, call: Call, answer: SendMessageAnswer, is_durable: bool) -> None:
    """Answer that messages were stored; whether they are durable is in the code."""
    settings = broker.settings
    fields = answer.encode()
    fields[MSG_REGION] = settings.region_id
    fields[TRACE_ON] = "true" if settings.trace_on else "false"
    code = ResponseCode.SUCCESS if is_durable else ResponseCode.FLUSH_DISK_TIMEOUT
    broker.service.answer(call.connection, call.command, Reply(code, fields))


def answer_failure(broker: Broker, call: Call, cause: Exception) -> None:
    """Answer why nothing was stored."""
    reply = failure(call.command, refusal(cause))
    broker.service.answer(call.connection, call.command, reply)


def refusal(cause: Exception) -> Exception:
    """Return what a client is told when a message cannot be stored."""
    if isinstance(cause, MessageRefusedError):
        return RefusedError(ResponseCode.MESSAGE_ILLEGAL, f"the message is illegal: {cause}")
    if isinstance(cause, DiskFullError):
        return RefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, f"{_DISK_FULL} [{cause}]")
    return cause
