"""Traces on their way to the trace topic.

T1  Nobody waits for a trace: it is queued, and sent with others a little later.
T2  What is queued is bounded. What finds no room, or cannot be written, is dropped and counted.
T3  Traces that a cluster does not take now wait in the queue: for a broker that is lost, whose
    topics may be unknown for so long, and for a topic that is missing.
T4  Traces are sent by a producer of their own, which nothing traces.
T5  close() writes what is queued as far as its time goes, and counts the rest as dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.sending.producer import AsyncProducer, ProducerSettings
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.errors import RocketPyError, TopicNotFoundError
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.broker_core.metadata.names import GROUP_NAME_LIMIT
from rocketpy.broker_core.net.errors import ServerUnreachableError

log = logging.getLogger(__name__)

GROUP_PREFIX = "_INNER_TRACE_PRODUCER-"  # as Apache's clients call theirs
MOST_WAITING = 8 << 20  # characters, of some tens of thousands of messages
_LINGER_S = 0.2
_BODY_CHARACTERS = 128_000  # of one message, as with Apache's clients
_KEY_CHARACTERS = 16_000  # half of what properties may take
_MESSAGES_AT_ONCE = 16
_PAUSE_S = 1.0  # before a cluster that did not take them is tried again
_TELL_EVERY_S = 60.0


class TraceCounts(NamedTuple):
    """How many traces were written, were dropped, and wait to be written."""

    written: int
    dropped: int
    waiting: int


class _Trace(NamedTuple):
    line: str
    keys: Collection[str]


class TraceWriter:
    """Writes traces to a topic of a cluster. Used in the loop of its session."""

    def __init__(self, session: Session, topic: str, group: str) -> None:
        """Send nothing yet; `group` is that of the client's own producer."""
        self._session, self.topic = session, topic
        own = (GROUP_PREFIX + group)[:GROUP_NAME_LIMIT]
        self._settings = ProducerSettings(group=own)
        self._producer: AsyncProducer | None = None
        self._waiting: deque[_Trace] = deque()
        self._waiting_size = self._unsent = self._written = self._dropped = 0
        self._came, self._emptied = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self._told_s, self._told = float("-inf"), 0
        self._is_missing = False

    @property
    def counts(self) -> TraceCounts:
        """What became of all traces so far."""
        return TraceCounts(self._written, self._dropped, len(self._waiting) + self._unsent)

    def put(self, line: str, keys: Collection[str]) -> None:
        """Have a trace written, to be found by some keys; it may be dropped."""
        if self._waiting_size + len(line) > MOST_WAITING or self._session.is_closed:
            self._drop(1, "more came than the cluster took")
            return
        self._waiting.append(_Trace(line, keys))
        self._waiting_size += len(line)
        self._came.set()
        if self._task is None:
            self._task = self._session.run(self._run(), "traces")

    async def close(self, timeout_s: float) -> None:
        """Write what is queued, for as long as that may take; drop the rest.

        A topic that is missing is not waited for.
        """
        self._is_closing = True
        self._came.set()
        if self._task is not None:
            self._emptied.clear()
            if self.counts.waiting and not self._is_missing:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._emptied.wait(), timeout_s)
            self._task.cancel()
        if left := self.counts.waiting:
            self._waiting.clear()
            self._unsent = self._waiting_size = 0
            self._told_s = float("-inf")
            self._drop(left, "the client was closed")

    # --- the loop ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                self._emptied.set()
                self._came.clear()
                await self._came.wait()
            if not self._is_closing:
                await asyncio.sleep(_LINGER_S)  # for others that go with it
            drafts, self._unsent = self._take()
            await self._send(drafts)
            self._unsent = 0

    async def _send(self, drafts: list[MessageDraft]) -> None:
        """Send messages until a cluster has them, or will not have them."""
        while True:
            try:
                if self._producer is None:
                    self._producer = AsyncProducer(self._session, self._settings)
                await self._producer.send_many(self.topic, drafts)
            except (ServerUnreachableError, NoBrokerError) as error:
                log.info("traces wait: %s", error)
                await asyncio.sleep(_PAUSE_S)
            except TopicNotFoundError:
                self._note_missing()
                await asyncio.sleep(_PAUSE_S)
            except RocketPyError as error:
                self._drop(self._unsent, str(error))
                return
            else:
                self._is_missing = False
                self._written += self._unsent
                return

    def _note_missing(self) -> None:
        if self._is_closing:
            self._emptied.set()  # as far as it will be
        if not self._is_missing:
            self._is_missing = True
            log.warning(
                "traces wait, as there is no topic %s: brokers make RocketMQ's own with "
                "traceTopicEnable=true; or trace to a topic of yours",
                self.topic,
            )

    def _take(self) -> tuple[list[MessageDraft], int]:
        """Take what goes out at once: messages, and how many traces are in them."""
        drafts: list[MessageDraft] = []
        taken = 0
        while self._waiting and len(drafts) < _MESSAGES_AT_ONCE:
            lines: list[str] = []
            keys: dict[str, None] = {}
            size = key_size = 0
            while self._waiting:
                line, more = self._waiting[0]
                size += len(line)
                key_size += sum(len(key) + 1 for key in more if key not in keys)
                if lines and (size > _BODY_CHARACTERS or key_size > _KEY_CHARACTERS):
                    break
                self._waiting.popleft()
                self._waiting_size -= len(line)
                lines.append(line)
                keys |= dict.fromkeys(more)
            taken += len(lines)
            drafts.append(MessageDraft("".join(lines).encode(), keys=KEY_SEPARATOR.join(keys)))
        return drafts, taken

    def _drop(self, count: int, why: str) -> None:
        self._dropped += count
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_EVERY_S:
            log.warning("%d traces were dropped: %s", self._dropped - self._told, why)
            self._told_s, self._told = now_s, self._dropped
