"""From the arguments of a caller to a consumer that runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rocketpy.broker_core.client.consuming.local_offsets import LocalOffsets, default_path
from rocketpy.broker_core.client.consuming.offset_keeping import (
    BrokerOffsets,
    FileOffsets,
    OffsetKeeping,
)
from rocketpy.broker_core.client.consuming.process_queue import BufferLimits
from rocketpy.broker_core.client.consuming.push import Handler, HandlerTerms, PushConsumer
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.shares import client_strategy
from rocketpy.broker_core.client.consuming.start import StartFrom
from rocketpy.broker_core.client.consuming.subscriptions import Topics, subscriptions
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.metadata.names import retry_topic
from rocketpy.broker_core.moments import Time
from rocketpy.broker_core.rebalance.catalogue import DEFAULT

_INSTANCE = "DEFAULT"  # of Apache's broadcasting clients: their files outlive the process


async def listen(
    session: Session,
    group: str,
    topics: Topics,
    handler: Handler,
    *,
    ordered: bool = False,
    broadcast: bool = False,
    start: Time = "latest",
    threads: int = 20,
    batch: int | None = None,
    max_tries: int | None = None,
    suspend_s: float = 1.0,
    strategy: str = DEFAULT,
    limits: BufferLimits | None = None,
    offsets_path: str | os.PathLike[str] | None = None,
) -> PushConsumer:
    """Return a consumer that has joined its group and hands messages to a handler.

    `topics` is a topic, several, or filters by topic: tags as `"paid || sent"`, or `Sql(...)`.
    The handler is a function, called in up to `threads` threads, or a coroutine function, of which
    as many calls run at once. It gets a message; with `batch`, a list of up to that many. It
    returns, or says `Later(...)` or raises to have the message again.

    With `ordered` each queue is handed out message by message, and a message that fails comes
    again after `suspend_s`, before the others. With `broadcast` every client gets all messages,
    and keeps its offsets in a file, `offsets_path`.

    `start` is where a group begins that never read: `latest`, `earliest`, or a time.

    Raises:
        GroupNameError, RebalanceError, MessageRefusedError: an argument cannot be.
        ServerUnreachableError: no name server answers.
        FilterRefusedError: a broker does not understand a filter.
    """
    wanted = subscriptions(topics, _now_ms())
    if not broadcast:
        wanted |= subscriptions(retry_topic(group), _now_ms())
    terms = GroupTerms(
        group=group,
        subscriptions=wanted,
        start=StartFrom.of(start),
        strategy=client_strategy(strategy),
        is_orderly=ordered,
        is_broadcasting=broadcast,
        commits_with_pulls=not broadcast,
        limits=limits or BufferLimits(),
    )
    calling = HandlerTerms(
        threads=threads, batch=batch, most_tries=max_tries, suspend_s=suspend_s
    )
    keeping = _keeping(session, group, offsets_path, broadcast=broadcast)
    consumer = PushConsumer(session, terms, keeping, handler, calling=calling)
    await consumer.start()
    return consumer


def _keeping(
    session: Session, group: str, path: str | os.PathLike[str] | None, *, broadcast: bool
) -> OffsetKeeping:
    if not broadcast:
        return BrokerOffsets(group, QueueCalls(session))
    address = session.client_id.partition("@")[0]
    file = default_path(f"{address}@{_INSTANCE}", group) if path is None else Path(path)
    return FileOffsets(LocalOffsets(file))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
