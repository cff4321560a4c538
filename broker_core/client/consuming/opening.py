"""From the arguments of a caller to a consumer that runs."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypedDict

from rocketpy.broker_core.client.consuming.defaults import MOST_MESSAGES
from rocketpy.broker_core.client.consuming.hooks import ConsumeHook
from rocketpy.broker_core.client.consuming.local_offsets import LocalOffsets, default_path
from rocketpy.broker_core.client.consuming.offset_keeping import (
    FileOffsets,
    OffsetKeeping,
    RemoteOffsets,
)
from rocketpy.broker_core.client.consuming.process_queue import BufferLimits
from rocketpy.broker_core.client.consuming.pull import PullConsumer
from rocketpy.broker_core.client.consuming.pulls import (
    HELD_LATE_S,
    HELD_S,
    Pull,
    PullAnswer,
    pull_answer,
)
from rocketpy.broker_core.client.consuming.push import Handler, HandlerTerms, PushConsumer
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.shares import client_strategy
from rocketpy.broker_core.client.consuming.start import StartFrom
from rocketpy.broker_core.client.consuming.subscriptions import (
    Subscription,
    Topics,
    Wanted,
    subscriptions,
)
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.namespaces import NO_NAMESPACE, Namespace
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import retry_topic
from rocketpy.broker_core.moments import Time
from rocketpy.broker_core.protocol.bodies.heartbeats import EVERYTHING
from rocketpy.broker_core.rebalance.catalogue import DEFAULT

TOOLS_GROUP = "TOOLS_CONSUMER"  # of Apache's tools: each broker has it, and pulls leave no trace
_INSTANCE = "DEFAULT"  # of Apache's broadcasting clients: their files outlive the process


class ListenOptions(TypedDict, total=False):
    """All that may be said of a push consumer besides group, topics and handler; see listen()."""

    ordered: bool
    broadcast: bool
    start: Time
    threads: int
    batch: int | None
    max_tries: int | None
    suspend_s: float
    handler_timeout_s: float | None
    strategy: str
    limits: BufferLimits | None
    offsets_path: str | os.PathLike[str] | None


class ConsumerOptions(TypedDict, total=False):
    """All that may be said of a pull consumer besides group and topics; see consume()."""

    queues: Collection[MessageQueue] | None
    wanted: Wanted
    start: Time
    auto_commit: bool
    strategy: str
    limits: BufferLimits | None


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
    handler_timeout_s: float | None = 900.0,
    strategy: str = DEFAULT,
    limits: BufferLimits | None = None,
    offsets_path: str | os.PathLike[str] | None = None,
    names: Namespace = NO_NAMESPACE,
    hooks: Sequence[ConsumeHook] = (),
) -> PushConsumer:
    """Return a consumer that has joined its group and hands messages to a handler.

    `topics` is a topic, several, or filters by topic: tags as `"paid || sent"`, or `Sql(...)`.
    The handler is a function, called in up to `threads` threads, or a coroutine function, of which
    as many calls run at once. It gets a message; with `batch`, a list of up to that many. It
    returns, or says `Later(...)` or raises to have the message again.

    With `ordered` each queue is handed out message by message, and a message that fails comes
    again after `suspend_s`, before the others. With `broadcast` every client gets all messages,
    and keeps its offsets in a file, `offsets_path`.

    `start` is where a group begins that never read: `latest`, `earliest`, or a time. A message
    whose handler takes longer than `handler_timeout_s` is sent back, unless in order. Group, topics
    and messages are as a program of the namespace calls them.

    Raises:
        GroupNameError, RebalanceError, MessageRefusedError: an argument cannot be.
        ServerUnreachableError: no name server answers.
        FilterRefusedError: a broker does not understand a filter.
    """
    group, wanted = names.wrap(group), subscriptions(topics, _now_ms(), names)
    if not broadcast:
        wanted |= subscriptions(retry_topic(group), _now_ms())
    terms = GroupTerms(
        group=group,
        subscriptions=wanted,
        start=StartFrom.of(start),
        strategy=client_strategy(strategy),
        is_orderly=ordered,
        is_broadcasting=broadcast,
        limits=limits or BufferLimits(),
        names=names,
    )
    calling = HandlerTerms(
        threads=threads,
        batch=batch,
        most_tries=max_tries,
        suspend_s=suspend_s,
        timeout_s=handler_timeout_s,
    )
    keeping = _keeping(session, group, offsets_path, broadcast=broadcast)
    consumer = PushConsumer(session, terms, keeping, handler, calling=calling, hooks=hooks)
    await consumer.start()
    return consumer


async def consume(
    session: Session,
    group: str,
    topics: Topics | None = None,
    *,
    queues: Collection[MessageQueue] | None = None,
    wanted: Wanted = EVERYTHING,
    start: Time = "latest",
    auto_commit: bool = True,
    strategy: str = DEFAULT,
    limits: BufferLimits | None = None,
    names: Namespace = NO_NAMESPACE,
    hooks: Sequence[ConsumeHook] = (),
) -> PullConsumer:
    """Return a consumer that gives messages when it is asked.

    With `topics`, as listen() has them, it shares them with the other clients of its group. With
    `queues` it reads these, whoever else does, and `wanted` is their filter. All names are as a
    program of the namespace has them.

    Raises:
        GroupNameError, RebalanceError, MessageRefusedError: an argument cannot be.
        ServerUnreachableError: no name server answers.
        FilterRefusedError: a broker does not understand a filter.
        TopicNotFoundError: there is no topic of the queues.
    """
    if (topics is None) == (queues is None):
        raise MessageRefusedError("a consumer", "reads topics or queues: give one of the two")
    group = names.wrap(group)
    if queues is not None:
        queues = [names.wrap_queue(each) for each in queues]
    if topics is None:
        topics = {each.topic: wanted for each in queues or ()}
    terms = GroupTerms(
        group=group,
        subscriptions=subscriptions(topics, _now_ms(), names),
        start=StartFrom.of(start),
        strategy=client_strategy(strategy),
        is_push=False,
        limits=limits or BufferLimits(),
        names=names,
    )
    keeping = RemoteOffsets(group, QueueCalls(session))
    consumer = PullConsumer(
        session, terms, keeping, assigned=queues, commits_itself=auto_commit, hooks=hooks
    )
    await consumer.start()
    return consumer


async def pull_at(
    session: Session,
    queue: MessageQueue,
    queue_offset: int,
    *,
    most: int = MOST_MESSAGES,
    wanted: Wanted = EVERYTHING,
    group: str = TOOLS_GROUP,
    wait_s: float = 0.0,
) -> PullAnswer:
    """Return the messages of a queue from an offset on, and where to read on; commits nothing.

    With `wait_s` the broker waits that long for messages, if there are none.

    Raises:
        NoBrokerError, ServerUnreachableError, ServerRefusedError
    """
    pull = Pull(
        group=group,
        queue=queue,
        queue_offset=queue_offset,
        most=most,
        held_s=wait_s,
        subscription=Subscription(queue.topic, wanted, 0),
        says_filter=True,
    )
    late_s = session.timeout_s + (wait_s + HELD_LATE_S - HELD_S if wait_s else 0)
    return pull_answer(
        pull, await session.try_broker(queue.broker, pull.command(), timeout_s=late_s)
    )


def _keeping(
    session: Session, group: str, path: str | os.PathLike[str] | None, *, broadcast: bool
) -> OffsetKeeping:
    if not broadcast:
        return RemoteOffsets(group, QueueCalls(session))
    address = session.client_id.partition("@")[0]
    file = default_path(f"{address}@{_INSTANCE}", group) if path is None else Path(path)
    return FileOffsets(LocalOffsets(file))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
