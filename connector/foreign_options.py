"""Options of connectors that one may come from, and what is given here instead of each.

A test compares docs/from-kafka.md and docs/from-rocketmq-spark.md with these tables; errors say the
same to those who do not read the pages.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Foreign(NamedTuple):
    """One row: options of theirs, `*` at the end for any that begin so; ours; what differs."""

    names: tuple[str, ...]
    ours: tuple[str, ...]
    difference: str = ""

    def matching(self, name: str) -> str | None:
        """Return which of the names an option in lower case is, as Spark hands it over."""
        for own in self.names:
            is_it = own.lower() == name
            if is_it or (own.endswith("*") and name.startswith(own[:-1].lower())):
                return own
        return None


KAFKA_READING = (
    Foreign(
        ("kafka.bootstrap.servers",),
        ("namesrvAddr", "path"),
        "the name servers of a cluster, or the folder of a store, which needs no server",
    ),
    Foreign(("subscribe",), ("topic",)),
    Foreign(
        ("subscribePattern",),
        ("topicPattern",),
        "the whole name has to match; RocketMQ's own topics do not, those of retries and dead "
        "letters only if it has a `%`",
    ),
    Foreign(("assign",), ("queues",), "the same JSON; instead of `topic`"),
    Foreign(
        ("startingOffsets",),
        ("startingOffsets",),
        "the same JSON, words and -1, -2; also `group`. In batch `latest` is allowed, and means "
        "nothing is read",
    ),
    Foreign(("endingOffsets",), ("endingOffsets",), "also `group` and `earliest`"),
    Foreign(
        ("startingTimestamp",),
        ("startingTimestamp",),
        "also ISO 8601. Always the time of storing",
    ),
    Foreign(("endingTimestamp",), ("endingTimestamp",)),
    Foreign(
        ("startingOffsetsByTimestamp",),
        ("startingTimestamp",),
        "the same JSON, a time for each queue; queues that it does not name start at the earliest",
    ),
    Foreign(
        ("endingOffsetsByTimestamp",),
        ("endingTimestamp",),
        "the same JSON, a time for each queue; queues that it does not name end at the latest",
    ),
    Foreign(
        ("startingOffsetsByTimestampStrategy",),
        ("startingTimestampStrategy",),
        "the default is `latest`, not `error`",
    ),
    Foreign(("failOnDataLoss",), ("failOnDataLoss",), "the message names queue and offsets"),
    Foreign(("maxOffsetsPerTrigger",), ("maxRowsPerTrigger",), "shared in proportion as well"),
    Foreign(("minOffsetsPerTrigger",), ("minRowsPerTrigger",)),
    Foreign(("maxTriggerDelay",), ("maxTriggerDelay",), "the same default, 15 minutes"),
    Foreign(("minPartitions",), ("minPartitions",)),
    Foreign(("maxRecordsPerPartition",), ("maxRowsPerPartition",)),
    Foreign(
        ("includeHeaders",),
        ("columns",),
        "properties are there by default; leave them out by naming the columns you want",
    ),
    Foreign(
        ("kafka.group.id", "groupIdPrefix"),
        ("consumerGroup",),
        "here a group is more than a name: the stream commits its offsets, `group` begins at "
        "them, `member` shares the queues",
    ),
    Foreign(("kafka.group.instance.id",), ("member",), "a query that shares the queues"),
    Foreign(("kafka.session.timeout.ms",), ("memberLease",), "a time with its unit, of a `member`"),
    Foreign(("kafka.partition.assignment.strategy",), ("rebalanceStrategy",), "of a `member`"),
    Foreign(
        ("kafka.auto.offset.reset",),
        ("startingOffsets",),
        "where a new query begins; later its checkpoint decides",
    ),
    Foreign(("kafka.enable.auto.commit",), ("commitOffsets",), "after each micro-batch"),
    Foreign(
        ("kafka.key.deserializer", "kafka.value.deserializer"),
        (),
        "bodies are binary; cast them in the query",
    ),
    Foreign(
        ("kafka.security.*", "kafka.sasl.*", "kafka.ssl.*"),
        (),
        "the rights of the folder decide",
    ),
    Foreign(
        ("kafkaConsumer.pollTimeoutMs", "fetchOffset.*", "spark.kafka.consumer.*"),
        (),
        "nothing to wait for, nothing to cache",
    ),
    Foreign(("kafka.*",), (), "a setting of Kafka's client, which is not here"),
)

KAFKA_WRITING = (
    Foreign(
        ("kafka.bootstrap.servers",),
        ("namesrvAddr", "path"),
        "the name servers of a cluster, or the folder of a store, which needs no server",
    ),
    Foreign(
        ("topic",),
        ("topic",),
        "wins over the column as well. A topic that is missing is made, with `queues` queues",
    ),
    Foreign(("includeHeaders",), ("propertyColumns",), "the map `properties` is always taken"),
    Foreign(("kafka.compression.type",), ("compress",), "`zlib`, `lz4` or `zstd`"),
    Foreign(("kafka.partitioner.class",), (), "`queue_id` or `sharding_key` in each row"),
    Foreign(
        ("kafka.acks", "kafka.retries", "kafka.enable.idempotence", "kafka.transactional.id"),
        (),
        "a batch is stored durably, whole and once",
    ),
    Foreign(
        ("kafka.key.serializer", "kafka.value.serializer"),
        (),
        "`body` is binary or a string",
    ),
    Foreign(
        ("kafka.security.*", "kafka.sasl.*", "kafka.ssl.*"),
        (),
        "the rights of the folder decide",
    ),
    Foreign(
        ("kafka.*", "spark.kafka.producer.*"), (), "a setting of Kafka's client, which is not here"
    ),
    Foreign(("checkpointLocation",), ("checkpointLocation",)),
)

ROCKETMQ_SPARK_READING = (
    Foreign(("nameServer",), ("namesrvAddr",), "the same; or `path`, the folder of a store"),
    Foreign(("topic",), ("topic",), "several with commas; also `topicPattern`"),
    Foreign(
        ("group",),
        ("consumerGroup",),
        "its offsets are read (`startingOffsets=group`) and committed",
    ),
    Foreign(
        ("startingOffsets",),
        ("startingOffsets",),
        'JSON has queues below the topic, `{"orders": {"0": 42}}`; a broker is named as '
        '`"broker-a:0"`',
    ),
    Foreign(("endingOffsets",), ("endingOffsets",), "the same"),
    Foreign(("failOnDataLoss",), ("failOnDataLoss",), "in batch as well"),
    Foreign(("subExpression",), ("tags",), "`a || b`, `*`; for SQL92 it is `sql`"),
    Foreign(("pullTimeout", "pullTimeoutMs"), ("requestTimeout",), "a time with its unit"),
    Foreign(("pullBatchSize",), ("pullBatchSize",), "4096, of which brokers give what they allow"),
    Foreign(
        ("spark.sql.rocketmq.pull.consumer.cache.maxCapacity",),
        (),
        "nothing is cached",
    ),
)

ROCKETMQ_SPARK_WRITING = (
    Foreign(("nameServer",), ("namesrvAddr",), "the same; or `path`, the folder of a store"),
    Foreign(("topic",), ("topic",), "wins over the column as well"),
    Foreign(("group",), (), "a store knows no producer groups"),
    Foreign(("spark.rocketmq.producer.cache.timeout",), (), "there is no producer to keep"),
)

ROCKETMQ_SPARK_DSTREAMS = (
    Foreign(("nameserver.addr",), ("namesrvAddr",), "the same; or `path`, the folder of a store"),
    Foreign(("consumer.topic",), ("topic",)),
    Foreign(("consumer.group",), ("consumerGroup",)),
    Foreign(("consumer.tag",), ("tags",)),
    Foreign(
        ("consumer.offset.reset.to",),
        ("startingOffsets",),
        "or `startingTimestamp`",
    ),
    Foreign(
        ("consumer.messages.orderly",),
        (),
        "a queue is in order always",
    ),
    Foreign(
        ("pull.max.speed.per.partition",),
        ("maxRowsPerTrigger",),
        "for all queues together; also `maxBytesPerTrigger`",
    ),
    Foreign(
        ("spout.messages.max.retry",),
        (),
        "`store.create_group(name, retry_max_times=)`, and `rocketpy.send_back`",
    ),
    Foreign(("spout.queue.size", "spout.messages.ttl"), (), "nothing waits in memory"),
    Foreign(
        ("consumer.offset.persist.interval",), ("commitOffsets",), "after each micro-batch, or not"
    ),
    Foreign(("pull.max.batch.size",), ("pullBatchSize",)),
    Foreign(("pull.timeout.ms",), ("requestTimeout",), "a time with its unit"),
    Foreign(
        (
            "pull.consumer.cache.*",
            "consumer.min.threads",
            "consumer.max.threads",
            "client.*",
            "nameserver.poll.interval",
            "brokerserver.heartbeat.interval",
        ),
        (),
        "nothing is cached, and tasks have no threads of their own",
    ),
)

_ORIGINS = (
    ("Kafka's connector", "docs/from-kafka.md", (*KAFKA_READING, *KAFKA_WRITING)),
    (
        "rocketmq-spark",
        "docs/from-rocketmq-spark.md",
        (*ROCKETMQ_SPARK_READING, *ROCKETMQ_SPARK_WRITING, *ROCKETMQ_SPARK_DSTREAMS),
    ),
)


class Advice(NamedTuple):
    """An option of another connector as it is spelt there, and what to do about it."""

    option: str
    remedy: str


def advice_on(name: str, known: Collection[str]) -> Advice | None:
    """Say what to give instead of an unknown option (in lower case); `known` are ours.

    Rows whose answer is an option of the other direction, reading or writing, do not count. If
    several rows fit, the most exact one counts.
    """
    found: list[tuple[str, str]] = []
    for origin, page, rows in _ORIGINS:
        for row in rows:
            own = row.matching(name)
            if own is not None and {*row.ours} <= {*known}:
                found.append((own, f"it is an option of {origin}; {_remedy(row)} ({page})"))
    if not found:
        return None
    own, remedy = max(found, key=lambda each: len(each[0]))
    return Advice(name if own.endswith("*") else own, remedy)


def _remedy(row: Foreign) -> str:
    difference = row.difference.replace("`", "'")
    if not row.ours:
        return f"leave it out: {difference}"
    instead = " or ".join(f"'{name}'" for name in row.ours)
    return f"give {instead} here" + (f": {difference}" if difference else "")
