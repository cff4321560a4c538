"""Options of Kafka's connector and of rocketmq-spark: each is answered, and none misleads."""

from __future__ import annotations

import pytest

from rocketpy.connector.foreign_options import (
    KAFKA_READING,
    KAFKA_WRITING,
    ROCKETMQ_SPARK_DSTREAMS,
    ROCKETMQ_SPARK_READING,
    ROCKETMQ_SPARK_WRITING,
    Foreign,
    advice_on,
)
from rocketpy.connector.option_tables import READ_OPTIONS, WRITE_OPTIONS
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.write_options import WriteOptions

READ_NAMES = [option.name for option in READ_OPTIONS]
WRITE_NAMES = [option.name for option in WRITE_OPTIONS]
READING = (*KAFKA_READING, *ROCKETMQ_SPARK_READING, *ROCKETMQ_SPARK_DSTREAMS)
WRITING = (*KAFKA_WRITING, *ROCKETMQ_SPARK_WRITING)

# As a user gives it, words of the answer.
OF_A_READ = [
    ("kafka.bootstrap.servers", "'kafka.bootstrap.servers' of", "give 'namesrvAddr' or 'path' "),
    ("subscribe", "'subscribe' of", "it is an option of Kafka's connector; give 'topic' here (d"),
    ("subscribePattern", "'subscribePattern' of", "give 'topicPattern' here"),
    ("assign", "'assign' of", "give 'queues' here: the same JSON; instead of 'topic'"),
    ("includeHeaders", "'includeHeaders' of", "give 'columns' here: properties are there by def"),
    ("maxOffsetsPerTrigger", "'maxOffsetsPerTrigger' of", "give 'maxRowsPerTrigger' here"),
    ("groupIdPrefix", "'groupIdPrefix' of", "give 'consumerGroup' here"),
    ("kafka.group.id", "'kafka.group.id' of", "give 'consumerGroup' here"),
    (
        "kafka.security.protocol",
        "'kafka.security.protocol'",
        "leave it out: the rights of the",
    ),
    ("kafka.max.poll.records", "'kafka.max.poll.records'", "leave it out: a setting of Kafka's"),
    ("kafkaConsumer.pollTimeoutMs", "'kafkaConsumer.pollTimeoutMs'", "leave it out: nothing to "),
    ("startingOffsetsByTimestamp", "'startingOffsetsByTimestamp'", "(docs/from-kafka.md)"),
    ("nameServer", "'nameServer' of", "it is an option of rocketmq-spark; give 'namesrvAddr' h"),
    ("group", "'group' of", "give 'consumerGroup' here"),
    ("subExpression", "'subExpression' of", "give 'tags' here: 'a || b', '*'; for SQL92 it is '"),
    ("pullTimeoutMs", "'pullTimeoutMs' of", "give 'requestTimeout' here: a time with its unit"),
    ("consumer.tag", "'consumer.tag' of", "give 'tags' here (docs/from-rocketmq-spark.md)"),
]
OF_A_WRITE = [
    ("includeHeaders", "'includeHeaders' of", "give 'propertyColumns' here"),
    ("kafka.bootstrap.servers", "'kafka.bootstrap.servers' of", "give 'namesrvAddr' or 'path'"),
    ("kafka.compression.type", "'kafka.compression.type' of", "give 'compress' here: 'zlib', 'lz"),
    ("kafka.acks", "'kafka.acks' of", "leave it out: a batch is stored durably, whole and once"),
    ("kafka.linger.ms", "'kafka.linger.ms' of", "leave it out: a setting of Kafka's client"),
    ("group", "'group' of", "leave it out: a store knows no producer groups"),
]


@pytest.mark.parametrize(("name", "option", "words"), OF_A_READ)
def test_a_read_answers_an_option_of_others(name: str, option: str, words: str) -> None:
    with pytest.raises(OptionError) as raised:
        ReadOptions.parse({"path": "store", "topic": "orders", name.lower(): "x"})
    assert option in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize(("name", "option", "words"), OF_A_WRITE)
def test_a_write_answers_an_option_of_others(name: str, option: str, words: str) -> None:
    with pytest.raises(OptionError) as raised:
        WriteOptions.parse({"path": "store", "topic": "orders", name.lower(): "x"})
    assert option in str(raised.value)
    assert words in str(raised.value)


def names_of(rows: tuple[Foreign, ...]) -> list[str]:
    return [name.replace("*", "x").lower() for row in rows for name in row.names]


@pytest.mark.parametrize(
    ("rows", "known"), [(READING, READ_NAMES), (WRITING, WRITE_NAMES)], ids=["read", "write"]
)
def test_every_name_that_is_not_ours_too_has_an_answer(
    rows: tuple[Foreign, ...], known: list[str]
) -> None:
    foreign = {*names_of(rows)} - {name.lower() for name in known}
    assert [name for name in sorted(foreign) if not advice_on(name, known)] == []


def test_a_name_of_nobody_gets_the_nearest_one() -> None:
    with pytest.raises(OptionError, match="did you mean 'topic'"):
        ReadOptions.parse({"path": "store", "topics": "orders"})
