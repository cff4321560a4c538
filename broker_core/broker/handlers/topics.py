"""Topics of a broker: made, changed, listed, looked into, deleted."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.queue_positions import position, queue_of, stored_ms
from rocketpy.broker_core.broker.registrant import topic_settings, topic_table
from rocketpy.broker_core.broker.topic_attributes import altered
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import (
    RETRY_TOPIC_PREFIX,
    TOPIC_NAME_LIMIT,
    TRACE_TOPIC,
    UNRESOLVED_TRANSACTION_TOPIC,
    check_topic_name,
    is_reserved_topic,
)
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.routes import TopicList
from rocketpy.broker_core.protocol.bodies.statistics import (
    ConsumeQueueEntries,
    ConsumeQueueEntry,
    TopicOffset,
    TopicStats,
)
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings, TopicSettingsList
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.reading import QueryConsumeQueue
from rocketpy.broker_core.protocol.requests.topics import (
    AllTopicsAnswer,
    CreateTopic,
    DeleteTopic,
    GetAllTopics,
    GetTopic,
    GetTopicStats,
)
from rocketpy.broker_core.storage.store import MOST_QUEUES

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

_MOST_ENTRIES = 10_000  # of a queue in one answer


def create_topic(broker: Broker, request: CreateTopic, call: Call) -> Reply:
    """Answer UPDATE_AND_CREATE_TOPIC (17)."""
    del call
    wanted = TopicConfig(
        request.topic,
        read_queues=request.read_queue_nums,
        write_queues=request.write_queue_nums,
        perm=request.perm,
        order=request.order,
        topic_filter_type=request.topic_filter_type,
        sys_flag=request.topic_sys_flag or 0,
    )
    _put(broker, {wanted: _attribute_changes(request.attributes)})
    return Reply()


def create_topics(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer UPDATE_AND_CREATE_TOPIC_LIST (18): all of them, or none if one is refused."""
    del call
    listed = TopicSettingsList.decode(request.body)
    _put(broker, {_config(topic): dict(topic.attributes) for topic in listed.topics})
    return Reply()


def _config(topic: TopicSettings) -> TopicConfig:
    return TopicConfig(
        topic.name,
        read_queues=topic.read_queues,
        write_queues=topic.write_queues,
        perm=topic.perm,
        order=topic.order,
        topic_filter_type=topic.topic_filter_type,
        sys_flag=topic.sys_flag,
    )


def _put(broker: Broker, wanted: dict[TopicConfig, dict[str, str]]) -> None:
    """Make or change topics, each with the changes of its attributes."""
    for topic in wanted:
        _require_legal(broker, topic.name)
        queues = topic.read_queues, topic.write_queues
        if not all(0 <= count <= MOST_QUEUES for count in queues):
            remark = f"topic[{topic.name}] has {queues} queues, allowed are 0 to {MOST_QUEUES}"
            raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    with broker.store.locked():
        known = broker.store.topics.all()
        changed = []
        for topic, attributes in wanted.items():
            old = known.get(topic.name)
            new = replace(topic, attributes=altered(old.attributes if old else None, attributes))
            if new != old:
                changed.append(new)
        broker.store.put_topics(changed)
    for topic in changed:
        log.info("topic %s is made or changed: %s", topic.name, topic)
    if changed:
        broker.topics.tell_changed()


def _attribute_changes(text: str | None) -> dict[str, str]:
    """Return changes that a text like `+message.type=FIFO,-reserve.time` names."""
    changes = {}
    for word in (text or "").split(","):
        name, _, value = word.strip().partition("=")
        if name:
            changes[name] = value
    return changes


def _require_legal(broker: Broker, topic: str) -> None:
    if not topic.strip():
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    try:
        check_topic_name(topic)
    except TopicNameError as cause:
        is_long = len(topic) > TOPIC_NAME_LIMIT
        remark = (
            f"The specified topic is longer than topic max length {TOPIC_NAME_LIMIT}."
            if is_long
            else f"The specified topic: {topic}, contains illegal characters, allowing only "
            "^[%|a-zA-Z0-9_-]+$"
        )
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark) from cause
    _refuse_own(broker, topic)


def _refuse_own(broker: Broker, topic: str) -> None:
    if _is_own(broker, topic):
        remark = f"The topic[{topic}] is conflict with system topic."
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)


def _is_own(broker: Broker, topic: str) -> bool:
    """Whether a topic is the broker's own: a system topic, or named after it or its cluster."""
    cluster = broker.settings.broker_cluster_name
    own = cluster, broker.settings.broker_name, f"{cluster}_REPLY_TOPIC"
    return is_reserved_topic(topic) or topic in own


def delete_topic(broker: Broker, request: DeleteTopic, call: Call) -> Reply:
    """Answer DELETE_TOPIC_IN_BROKER (215); one that is not there is deleted already.

    Retry topics that POP consumers have of it alone go with it, as in Apache's broker.
    """
    del call
    topic = request.topic
    if not topic.strip():
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    _refuse_own(broker, topic)
    known = broker.store.topics.all()
    retries = (
        f"{RETRY_TOPIC_PREFIX}{group}{sign}{topic}"
        for group in broker.offsets.groups_of(topic)
        for sign in "_+"
    )
    for name in (topic, *(each for each in retries if each in known)):
        remove(broker, name)
    broker.topics.tell_changed()
    return Reply()


def remove(broker: Broker, topic: str) -> None:
    """Delete a topic and all that the broker knows of it; blocks."""
    broker.store.delete_topic(topic)
    broker.offsets.delete_topic(topic)
    broker.loop.call_soon_threadsafe(broker.stats.forget_topic, topic)


def all_topics(broker: Broker, request: GetAllTopics, call: Call) -> Reply:
    """Answer GET_ALL_TOPIC_CONFIG (21): all, or so many from one number on."""
    del call
    table = topic_table(broker)
    first = max(request.topic_seq or 0, 0)
    most = request.max_topic_num if (request.max_topic_num or 0) > 0 else len(table.topics)
    page = dict(islice(table.topics.items(), first, first + (most or 0)))
    answer = AllTopicsAnswer(total_topic_num=len(table.topics))
    return Reply.of(answer, replace(table, topics=page).encode())


def get_topic(broker: Broker, request: GetTopic, call: Call) -> Reply:
    """Answer GET_TOPIC_CONFIG (351)."""
    del call
    config = broker.topics.get(request.topic)
    if config is None:
        remark = f"No topic in this broker. topic: {request.topic}"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    return Reply(body=topic_settings(config).encode())


def system_topics(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305)."""
    del request, call
    own = {name for name in broker.store.topics.all() if _is_own(broker, name)}
    found = sorted(own | {TRACE_TOPIC, UNRESOLVED_TRANSACTION_TOPIC})
    return Reply(body=TopicList(topic_list=tuple(found)).encode())


def topic_stats(broker: Broker, request: GetTopicStats, call: Call) -> Reply:
    """Answer GET_TOPIC_STATS_INFO (202)."""
    del call
    config = broker.topics.get(request.topic)
    if config is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{request.topic}] not exist")
    found = {}
    for queue_id in range(max(config.write_queues, config.read_queues)):
        low, end = position(broker, config.name, queue_id)
        updated_ms = stored_ms(broker, config.name, queue_id, end - 1) if end > low else None
        queue = MessageQueue(config.name, broker.settings.broker_name, queue_id)
        found[queue] = TopicOffset(
            min_offset=low, max_offset=end, last_update_timestamp=updated_ms or 0
        )
    stats = TopicStats(offset_table=found, topic_put_tps=broker.stats.sent_tps(config.name))
    return Reply(body=stats.encode())


def queue_entries(broker: Broker, request: QueryConsumeQueue, call: Call) -> Reply:
    """Answer QUERY_CONSUME_QUEUE (321)."""
    del call
    topic, queue_id = request.topic or "", request.queue_id or 0
    queue = queue_of(broker, topic, queue_id)
    if queue is None:
        remark = f"{queue_id}@{topic} is not exist!"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    low, end = queue.range()
    first = max(request.index or 0, low)
    last = min(end, first + min(max(request.count or 0, 0), _MOST_ENTRIES))
    entries = tuple(
        ConsumeQueueEntry(
            physical_offset=int(unit["physical_offset"]),
            size_bytes=int(unit["size"]),
            tags_code=int(unit["tag_code"]),
        )
        for unit in (queue.queue.units(first, last) if last > first else ())
    )
    body = ConsumeQueueEntries(entries=entries, max_queue_index=end, min_queue_index=low)
    return Reply(body=body.encode())
