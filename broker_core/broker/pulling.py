"""Reading for consumers: what is in a queue from an offset on, and how Apache's broker says it.

P1  Bodies are views of the log: no byte is copied but by the socket.
P2  What a filter leaves out is passed over, however much that is, a bounded part at a time.
P3  Offsets that are not there are answered with one that is, never with nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.broker.waiting_pulls import WaitingPull
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.net.service import Call, Reply, failure
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.reading import PullMessage
from rocketpy.broker_core.storage.raw_reading import RawReader, RawRecords

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

_MOST_LOOKED_AT = 65_536  # entries of a queue, for one pull with a filter
SQL92 = "SQL92"


@dataclass(frozen=True, slots=True)
class WantedMessages:
    """What a subscription asks for: all, some tags, or what passes SQL92."""

    tag_codes: npt.NDArray[np.int64] | None = None
    sql: SqlFilter | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.tag_codes is None and self.sql is None


ALL = WantedMessages()


@lru_cache(maxsize=1024)
def wanted_of(expression: str, expression_type: str | None) -> WantedMessages:
    """Return what an expression asks for.

    Raises:
        MessageRefusedError, FilterError: it cannot be read.
    """
    if expression_type == SQL92:
        return WantedMessages(sql=SqlFilter(expression))
    if not expression.strip():
        return ALL
    tags = TagFilter.parse(expression)
    return ALL if tags.takes_all else WantedMessages(tag_codes=tags.codes())


@dataclass(frozen=True, slots=True)
class Found:
    """What a pull finds: its code and remark are those of Apache's broker."""

    code: int
    status: str
    next_offset: int
    low: int
    end: int
    records: RawRecords | None = None


class Pulling:
    """Answers pulls on one broker: at once, or when a message comes. Used in the loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def answer(self, request: PullMessage, call: Call, wanted: WantedMessages) -> Reply | None:
        """Return the answer to a pull; None if it waits."""
        return self.answer_found(request, call, self.find(request, request.queue_offset, wanted))

    def answer_found(self, request: PullMessage, call: Call, found: Found) -> Reply | None:
        """Return the answer to a pull that found something or nothing; None if it waits."""
        if found.code == ResponseCode.PULL_NOT_FOUND and self._may_wait(request):
            self._hold(request, call, found)
            return None
        return self.reply(request, found)

    def again(self, pull: WaitingPull) -> None:
        """Answer a pull for whose queue something came, or let it wait on."""
        broker, request, call = self._broker, pull.request, pull.call
        try:
            wanted = broker.subscriptions.wanted(request, call)
            found = self.find(request, pull.offset, wanted)
            if found.records is None and self._is_after(found, pull):
                pull.offset = found.next_offset
                return broker.waiting_pulls.hold(pull)
            reply = self.reply(request, found)
        except Exception as cause:
            reply = failure(call.command, cause)
        return broker.service.answer(call.connection, call.command, reply)

    def give_up(self, pull: WaitingPull) -> None:
        """Answer a pull whose time is over: nothing came."""
        request, call = pull.request, pull.call
        try:
            low, end = self._queue(request).recent_range()
        except Exception as cause:
            return self._broker.service.answer(
                call.connection, call.command, failure(call.command, cause)
            )
        found = Found(ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", pull.offset, low, end)
        reply = self.reply(request, found)
        return self._broker.service.answer(call.connection, call.command, reply)

    def find(self, request: PullMessage, offset: int, wanted: WantedMessages) -> Found:
        """Return what a queue has for a pull from an offset on."""
        queue = self._queue(request)
        low, end = queue.recent_range()
        if end == 0 or low == end:
            if offset == end:
                status = "NO_MESSAGE_IN_QUEUE" if end == 0 else "OFFSET_OVERFLOW_ONE"
                return Found(ResponseCode.PULL_NOT_FOUND, status, offset, low, end)
            return Found(ResponseCode.PULL_OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE", end, low, end)
        if offset < low:
            return Found(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", low, low, end)
        if offset == end:
            return Found(ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", offset, low, end)
        if offset > end:
            return Found(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", end, low, end)
        try:
            records = self._read(queue, request, (offset, end), wanted)
        except CorruptStoreError:
            # Another process may have deleted old files; the range above does not know that yet.
            low, end = queue.range()
            if offset >= low:
                raise
            return Found(ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", low, low, end)
        if records.messages:
            code, next_offset = ResponseCode.SUCCESS, records.next_offset
            return Found(code, "FOUND", next_offset, low, end, records)
        code = ResponseCode.PULL_RETRY_IMMEDIATELY
        return Found(code, "NO_MATCHED_MESSAGE", records.next_offset, low, end)

    def _queue(self, request: PullMessage) -> RawReader:
        return self._broker.store.raw_queue(request.topic, request.queue_id)

    def _read(
        self,
        queue: RawReader,
        request: PullMessage,
        offsets: tuple[int, int],
        wanted: WantedMessages,
    ) -> RawRecords:
        settings, (offset, end) = self._broker.settings, offsets
        most = settings.max_transfer_bytes_on_message_in_memory
        most_bytes = min(request.max_msg_bytes or most, most)
        limit = settings.max_transfer_count_on_message_in_memory
        most_messages = max(min(request.max_msg_nums, limit), 1)
        if not wanted.is_all:
            end = min(end, offset + _MOST_LOOKED_AT)
        if wanted.sql is not None:
            return queue.raw_passing(
                offset, end, wanted.sql, most_bytes=most_bytes, most_messages=most_messages
            )
        return queue.raw(
            offset,
            end,
            most_bytes=most_bytes,
            most_messages=most_messages,
            tag_codes=wanted.tag_codes,
        )

    def _may_wait(self, request: PullMessage) -> bool:
        return bool(request.sys_flag & 2) and not self._broker.is_stopping

    def _is_after(self, found: Found, pull: WaitingPull) -> bool:
        """Whether nothing came for a pull but what its filter leaves out."""
        waits_on = found.code in (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)
        return waits_on and found.next_offset == found.end and self._has_time(pull)

    def _has_time(self, pull: WaitingPull) -> bool:
        return self._broker.loop.time() < pull.deadline_s and not self._broker.is_stopping

    def _hold(self, request: PullMessage, call: Call, found: Found) -> None:
        settings = self._broker.settings
        wait_ms = request.suspend_timeout_millis
        if not settings.long_polling_enable:
            wait_ms = settings.short_polling_time_mills
        deadline_s = self._broker.loop.time() + wait_ms / 1000
        pull = WaitingPull(request, call, found.next_offset, deadline_s)
        self._broker.waiting_pulls.hold(pull)

    def reply(self, request: PullMessage, found: Found) -> Reply:
        """Return the answer that says what was found."""
        fields = {
            "suggestWhichBrokerId": str(self._broker.settings.broker_id),
            "nextBeginOffset": str(found.next_offset),
            "minOffset": str(found.low),
            "maxOffset": str(found.end),
            "topicSysFlag": "0",
            "groupSysFlag": "0",
        }
        records = found.records
        if records is None:
            return Reply(found.code, fields, remark=found.status)
        size = sum(map(len, records.views))
        group, topic = request.consumer_group, request.topic
        self._broker.stats.given(group, topic, records.messages, size)
        self._broker.offsets.note_pulled(group, topic, request.queue_id, found.next_offset)
        return Reply(found.code, fields, records.views, remark=found.status)
