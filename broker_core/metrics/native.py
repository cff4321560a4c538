"""The names that RocketMQ 5.x's own brokers have, and a few of ours beside them.

Labels are those of 5.x (BrokerMetricsConstant, DefaultStoreMetricsConstant) as far as they can be
told: documented.py says from what each is told, and why some names are missing. Lag is as
`mqadmin consumerProgress` counts it, and of groups that are offline as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rocketpy.broker_core.metadata.names import (
    DEAD_LETTER_TOPIC_PREFIX,
    is_dead_letter_topic,
    is_reserved_topic,
    is_retry_topic,
    is_system_group,
)
from rocketpy.broker_core.metrics.delays import OF_DELAYS
from rocketpy.broker_core.metrics.facts import (
    NAME_SERVER,
    BrokerFacts,
    NameServerFacts,
    QueuePlace,
    TopicLag,
    Traffic,
)
from rocketpy.broker_core.metrics.families import COUNTER, GAUGE, Family, Row, of_broker, truth
from rocketpy.broker_core.metrics.figures import number_of, size_of

_REMOTING = "remoting"
_GROUP_LABELS = ("consumer_group", "topic", "is_retry", "is_system")
_OUT_LABELS = ("consumer_group", "topic", "is_system")
_STORAGE_LABELS = ("storage_type", "storage_medium")
_STORAGE = ("local", "disk")
# The label of a processor in 5.x, and the figure that has the length of its queue.
_PROCESSORS = {
    "send": "sendThreadPoolQueueSize",
    "pull": "pullThreadPoolQueueSize",
    "lite_pull": "litePullThreadPoolQueueSize",
    "query_message": "queryThreadPoolQueueSize",
    "ack": "ackThreadPoolQueueSize",
    "transaction": "EndTransactionQueueSize",
}

Number = float | None


def _one(value: Callable[[BrokerFacts], Number]) -> Callable[[BrokerFacts], Iterable[Row]]:
    """Return rows of a broker itself."""

    def rows(facts: BrokerFacts) -> Iterator[Row]:
        number = value(facts)
        if number is not None:
            yield (), number

    return rows


def _figure(name: str) -> Callable[[BrokerFacts], Iterable[Row]]:
    return _one(lambda facts: number_of(facts.figures, name))


def _stored(value: Callable[[BrokerFacts], Number]) -> Callable[[BrokerFacts], Iterable[Row]]:
    rows = _one(value)
    return lambda facts: ((_STORAGE, number) for _, number in rows(facts))


def _incoming(value: Callable[[Traffic], Number]) -> Callable[[BrokerFacts], Iterable[Row]]:
    def rows(facts: BrokerFacts) -> Iterator[Row]:
        for each in facts.sent:
            number = value(each)
            if number is not None:
                yield (each.topic, truth(is_reserved_topic(each.topic))), number

    return rows


def _outgoing(value: Callable[[Traffic], Number]) -> Callable[[BrokerFacts], Iterable[Row]]:
    def rows(facts: BrokerFacts) -> Iterator[Row]:
        for each in facts.given:
            number = value(each)
            if number is not None:
                group, topic, _, is_system = group_labels(each.group, each.topic)
                yield (group, topic, is_system), number

    return rows


def _lag(value: Callable[[TopicLag], Number]) -> Callable[[BrokerFacts], Iterable[Row]]:
    def rows(facts: BrokerFacts) -> Iterator[Row]:
        for each in facts.lags:
            number = value(each)
            if number is not None:
                yield group_labels(each.group, each.topic), number

    return rows


def _queues(value: Callable[[QueuePlace], Number]) -> Callable[[BrokerFacts], Iterable[Row]]:
    def rows(facts: BrokerFacts) -> Iterator[Row]:
        for each in facts.lags:
            labels = group_labels(each.group, each.topic)
            for queue in each.queues:
                number = value(queue)
                if number is not None:
                    yield (*labels, str(queue.queue_id)), number

    return rows


def group_labels(group: str, topic: str) -> tuple[str, ...]:
    """Return what a series of a group and a topic is labelled with, as 5.x does it."""
    is_system = is_reserved_topic(topic) or is_system_group(group)
    return group, topic, truth(is_retry_topic(topic)), truth(is_system)


def _ready(lag: TopicLag) -> Number:
    return None if lag.pulled is None else max(lag.lag - lag.pulled, 0)


def _watermarks(facts: BrokerFacts) -> Iterator[Row]:
    for processor, figure in _PROCESSORS.items():
        number = number_of(facts.figures, figure)
        if number is not None:
            yield (processor,), number


def _dead_letters(facts: BrokerFacts) -> Iterator[Row]:
    for topic, end in facts.ends.items():
        if is_dead_letter_topic(topic):
            group = topic.removeprefix(DEAD_LETTER_TOPIC_PREFIX)
            yield (group, truth(is_system_group(group))), end


def _producers(facts: BrokerFacts) -> Iterator[Row]:
    for each in facts.producers:
        yield (each.language, each.version, _REMOTING), each.clients


def _consumers(facts: BrokerFacts) -> Iterator[Row]:
    for each in facts.consumers:
        is_system = truth(is_system_group(each.group))
        labels = each.group, each.language, each.version, each.mode, _REMOTING, is_system
        yield labels, each.clients


def _reserve_ms(facts: BrokerFacts) -> Number:
    first_ms = number_of(facts.figures, "earliestMessageTimeStamp")
    return None if first_ms is None else max(facts.now_ms - first_ms, 0)


def _flush_behind(facts: BrokerFacts) -> Number:
    if facts.flush_behind_bytes is not None:
        return facts.flush_behind_bytes
    return size_of(facts.figures.get("remainHowManyDataToFlush"))


def _timer_late_ms(facts: BrokerFacts) -> Number:
    late_s = number_of(facts.figures, "timerReadBehind")  # in whole seconds
    return None if late_s is None else late_s * 1000


def _log_bytes(facts: BrokerFacts) -> Number:
    first = number_of(facts.figures, "commitLogMinOffset")
    end = number_of(facts.figures, "commitLogMaxOffset")
    return None if first is None or end is None else end - first


_PLAIN: Sequence[Family[BrokerFacts]] = (
    of_broker(
        *("rocketpy_broker_up", GAUGE, "Whether the broker answers what it is asked."),
        ("address",),
        lambda facts: [((facts.address,), int(facts.is_up))],
    ),
    of_broker(
        *("rocketpy_scrape_errors", GAUGE, "Requests of this scrape that failed, by their name."),
        ("request",),
        lambda facts: [((name,), count) for name, count in facts.errors.items()],
    ),
    of_broker(
        *("rocketmq_processor_watermark", GAUGE, "Requests that wait in a queue of the broker."),
        ("processor",),
        _watermarks,
    ),
    of_broker(
        *("rocketmq_broker_permission", GAUGE, "6 to read and write, 4 to read, 2 to write."),
        (),
        _one(lambda facts: facts.permission),
    ),
    of_broker(
        *("rocketmq_topic_number", GAUGE, "Topics, RocketMQ's own included."),
        (),
        _one(lambda facts: facts.topic_count),
    ),
    of_broker(
        *("rocketmq_consumer_group_number", GAUGE, "Groups, RocketMQ's own included."),
        (),
        _one(lambda facts: facts.group_count),
    ),
    of_broker(
        *("rocketmq_messages_in_total", COUNTER, "Messages that were stored."),
        ("topic", "is_system"),
        _incoming(lambda each: each.messages),
    ),
    of_broker(
        *("rocketmq_throughput_in_total", COUNTER, "Bytes of messages that were stored."),
        ("topic", "is_system"),
        _incoming(lambda each: each.size_bytes),
    ),
    of_broker(
        *("rocketmq_messages_out_total", COUNTER, "Messages that groups were given."),
        _OUT_LABELS,
        _outgoing(lambda each: each.messages),
    ),
    of_broker(
        *("rocketmq_throughput_out_total", COUNTER, "Bytes of messages that groups were given."),
        _OUT_LABELS,
        _outgoing(lambda each: each.size_bytes),
    ),
    of_broker(
        *("rocketmq_producer_connections", GAUGE, "Clients that send."),
        ("language", "version", "protocol_type"),
        _producers,
    ),
    of_broker(
        *("rocketmq_consumer_connections", GAUGE, "Clients that consume."),
        ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system"),
        _consumers,
    ),
    of_broker(
        *("rocketmq_consumer_lag_messages", GAUGE, "Messages that a group has not read."),
        _GROUP_LABELS,
        _lag(lambda each: each.lag),
    ),
    of_broker(
        "rocketmq_consumer_lag_latency",
        *(GAUGE, "Milliseconds since the oldest message that a group has not read was stored."),
        _GROUP_LABELS,
        _lag(lambda each: each.age_ms),
    ),
    of_broker(
        *("rocketmq_consumer_inflight_messages", GAUGE, "Messages given out and not committed."),
        _GROUP_LABELS,
        _lag(lambda each: each.pulled),
    ),
    of_broker(
        *("rocketmq_consumer_ready_messages", GAUGE, "Messages that were not given out yet."),
        _GROUP_LABELS,
        _lag(_ready),
    ),
    of_broker(
        "rocketmq_consumer_queueing_latency",
        *(GAUGE, "Milliseconds since the oldest message that was not given out was stored."),
        _GROUP_LABELS,
        _lag(lambda each: each.unpulled_age_ms),
    ),
    of_broker(
        *("rocketmq_send_to_dlq_messages_total", COUNTER, "Messages that became dead letters."),
        ("consumer_group", "is_system"),
        _dead_letters,
    ),
    of_broker(
        *("rocketmq_storage_size", GAUGE, "Bytes that the store takes on the disk."),
        _STORAGE_LABELS,
        _stored(lambda facts: facts.storage_bytes),
    ),
    of_broker(
        *("rocketmq_storage_flush_behind_bytes", GAUGE, "Bytes of the log that are not durable."),
        _STORAGE_LABELS,
        _stored(_flush_behind),
    ),
    of_broker(
        "rocketmq_storage_dispatch_behind_bytes",
        *(GAUGE, "Bytes of the log whose messages are in no queue yet."),
        _STORAGE_LABELS,
        _stored(lambda facts: number_of(facts.figures, "dispatchBehindBytes")),
    ),
    of_broker(
        "rocketmq_storage_message_reserve_time",
        *(GAUGE, "Milliseconds since the oldest message of the log was stored."),
        _STORAGE_LABELS,
        _stored(_reserve_ms),
    ),
    of_broker(
        "rocketmq_timer_enqueue_lag",
        *(GAUGE, "Messages with a time that are not in the timer wheel yet."),
        _STORAGE_LABELS,
        _stored(lambda facts: number_of(facts.figures, "timerOffsetBehind")),
    ),
    of_broker(
        "rocketmq_timer_dequeue_latency",
        *(GAUGE, "Milliseconds by which the timer wheel is late."),
        _STORAGE_LABELS,
        _stored(_timer_late_ms),
    ),
    of_broker(
        *("rocketpy_broker_log_bytes", GAUGE, "Bytes from the first to the end of the log."),
        (),
        _one(_log_bytes),
    ),
    of_broker(
        *("rocketpy_broker_disk_used_ratio", GAUGE, "How full the disk of the log is, up to 1."),
        (),
        _figure("commitLogDiskRatio"),
    ),
)

# Up to some version the exporter of Apache's brokers told these by their plain names, since then
# with the unit at the end: boards know either.
_WITH_UNIT = {
    "rocketmq_consumer_lag_latency": "milliseconds",
    "rocketmq_consumer_queueing_latency": "milliseconds",
    "rocketmq_storage_message_reserve_time": "milliseconds",
    "rocketmq_storage_size": "bytes",
    "rocketmq_timer_dequeue_latency": "milliseconds",
}
OF_BROKERS: Sequence[Family[BrokerFacts]] = (
    *_PLAIN,
    *OF_DELAYS,
    *(
        each._replace(name=f"{each.name}_{_WITH_UNIT[each.name]}")
        for each in _PLAIN
        if each.name in _WITH_UNIT
    ),
)

BY_QUEUE: Sequence[Family[BrokerFacts]] = (
    of_broker(
        "rocketpy_consumer_queue_lag_messages",
        *(GAUGE, "Messages of a queue that a group has not read."),
        (*_GROUP_LABELS, "queue_id"),
        _queues(lambda each: each.lag),
    ),
    of_broker(
        "rocketpy_consumer_queue_lag_latency",
        *(GAUGE, "Milliseconds since the oldest unread message of a queue was stored."),
        (*_GROUP_LABELS, "queue_id"),
        _queues(lambda each: each.age_ms),
    ),
)

OF_NAME_SERVERS: Sequence[Family[NameServerFacts]] = (
    Family(
        *("rocketpy_nameserver_up", GAUGE, "Whether the name server answers."),
        ("node_type", "node_id"),
        lambda facts: [((NAME_SERVER, facts.address), int(facts.is_up))],
    ),
    Family(
        *("rocketpy_nameserver_brokers", GAUGE, "Brokers that are registered, slaves included."),
        ("cluster", "node_type", "node_id"),
        lambda facts: [
            ((cluster, NAME_SERVER, facts.address), count)
            for cluster, count in facts.brokers.items()
        ],
    ),
    Family(
        *("rocketpy_nameserver_topics", GAUGE, "Topics that brokers have registered."),
        ("node_type", "node_id"),
        lambda facts: (
            [] if facts.topics is None else [((NAME_SERVER, facts.address), facts.topics)]
        ),
    ),
)
