"""Options: what is refused and with which words, and what is made of those that are right."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.connector.test_member_options import BAD as MEMBER_BAD

from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.connector.option_tables import READ_OPTIONS
from rocketpy.connector.options import OptionError
from rocketpy.connector.positions import AtTime, ByQueue, NamedPosition, TimesByQueue
from rocketpy.connector.read_options import VIEWS, ReadOptions

MILLENNIUM_MS = 946_684_800_000

# Options besides `path` and `topic`, the option that is named, words of the message.
BAD = [
    ({"topics": "a"}, "topics", "no such option; did you mean 'topic'?"),
    ({"startingOffset": "earliest"}, "startingoffset", "did you mean 'startingOffsets'?"),
    ({"like_no_other": "h:1"}, "like_no_other", "known are besideConsumers, col"),
    ({"path": ""}, "path", "is missing; give .option('path', ...) for the folder of a store"),
    ({"path": "rocketmq://a:1"}, "path", "a cluster; give it as 'namesrvAddr'"),
    ({"namesrvAddr": "a:1"}, "namesrvAddr", "cannot be given together with 'path'"),
    ({"credentials": "a.yml"}, "credentials", "is for clusters; give 'namesrvAddr'"),
    ({"tls": "on"}, "tls", "is for clusters; give 'namesrvAddr'"),
    ({"requestTimeout": "5s"}, "requestTimeout", "is for clusters; give 'namesrvAddr'"),
    ({"retryTimeout": "5s"}, "retryTimeout", "is for clusters; give 'namesrvAddr'"),
    ({"pullBatchSize": "32"}, "pullBatchSize", "is for clusters; give 'namesrvAddr'"),
    ({"besideConsumers": "true"}, "besideConsumers", "is for clusters; give 'namesrvAddr'"),
    ({"path": "s3a://bucket/x"}, "path", "is 's3a://bucket/x': 's3a:' is no file system"),
    ({"topic": ""}, "topic", "names no topic"),
    ({"topic": " , "}, "topic", "names no topic"),
    ({"topicPattern": "a.*"}, "topicPattern", "together with 'topic'"),
    ({"queues": '{"a": [0]}'}, "queues", "together with 'topic'"),
    ({"topic": None}, "topic", "is missing; give 'topic', 'topicPattern' or 'queues'"),
    ({"topic": None, "topicPattern": "a["}, "topicPattern", "is 'a[': unterminated"),
    ({"topic": None, "topicPattern": " "}, "topicPattern", "is missing"),
    ({"topic": None, "queues": "{"}, "queues", 'is no JSON (Expecting property name'),
    ({"topic": None, "queues": "{}"}, "queues", 'names no topic; give JSON like {"orders": '),
    ({"topic": None, "queues": "[0]"}, "queues", "names no topic"),
    ({"topic": None, "queues": '{"a": 0}'}, "queues", "has no list for 'a'"),
    ({"topic": None, "queues": '{"a": []}'}, "queues", "has no list for 'a'"),
    ({"topic": None, "queues": '{"a": [-1]}'}, "queues", "of topic 'a': -1 is no queue"),
    ({"topic": None, "queues": '{"a": [0.5]}'}, "queues", "write 'broker:id' or an id"),
    ({"consumerGroup": "a b"}, "consumerGroup", "it has ' ' at position 1"),
    ({"includeRetry": "maybe"}, "includeRetry", "is 'maybe'; give true or false"),
    ({"includeRetry": "true"}, "includeRetry", "of which group? give 'consumerGroup'"),
    ({"startingOffsets": "begin"}, "startingOffsets", "is 'begin'; give 'earliest', 'latest', 'gr"),
    ({"startingOffsets": "{"}, "startingOffsets", "is no JSON"),
    ({"startingOffsets": '{"a": 3}'}, "startingOffsets", "has no queues for 'a'"),
    ({"startingOffsets": '{"a": {"x": 3}}'}, "startingOffsets", "'x' is no queue"),
    ({"startingOffsets": '{"a": {"0": -3}}'}, "startingOffsets", "is -3 for a/0; give an offset"),
    ({"startingOffsets": '{"a": {"0": "3"}}'}, "startingOffsets", "is '3' for a/0"),
    ({"startingOffsets": '{"a": {"0": true}}'}, "startingOffsets", "is True for a/0"),
    ({"startingOffsets": "group"}, "startingOffsets", "but which? give 'consumerGroup'"),
    ({"endingOffsets": "never"}, "endingOffsets", "is 'never'"),
    ({"endingOffsets": "group"}, "endingOffsets", "but which? give 'consumerGroup'"),
    ({"startingTimestamp": "noon"}, "startingTimestamp", "is 'noon'; give milliseconds since 1970"),
    ({"startingTimestamp": ""}, "startingTimestamp", "is missing"),
    ({"startingTimestamp": "{"}, "startingTimestamp", "is no JSON"),
    ({"startingTimestamp": '{"a": 3}'}, "startingTimestamp", "has no queues for 'a'"),
    ({"startingTimestamp": '{"a": {"x": 3}}'}, "startingTimestamp", "'x' is no queue"),
    ({"startingTimestamp": '{"a": {"0": "noon"}}'}, "startingTimestamp", "is 'noon'; give milli"),
    ({"endingTimestamp": '{"a": {"0": 1.5}}'}, "endingTimestamp", "is 1.5 for a/0; give milli"),
    ({"endingTimestamp": '{"a": {"0": -1}}'}, "endingTimestamp", "is '-1'; give milliseconds"),
    (
        {"startingTimestamp": '{"a": {"0": 1}}', "scan": "commitlog"},
        "startingTimestamp",
        "has times by queue, which scan=commitlog does not know",
    ),
    ({"endingTimestamp": "2026-13-01"}, "endingTimestamp", "or a time like 2026-01-31T08:00:00Z"),
    ({"startingTimestamp": "2", "endingTimestamp": "1"}, "endingTimestamp", "before 'startingTime"),
    (
        {"startingTimestamp": "1", "startingOffsets": "latest"},
        "startingTimestamp",
        "together with 'startingOffsets'",
    ),
    (
        {"endingTimestamp": "1", "endingOffsets": "latest"},
        "endingTimestamp",
        "together with 'endingOffsets'",
    ),
    ({"startingTimestampStrategy": "error"}, "startingTimestampStrategy", "goes with 'startingTi"),
    (
        {"startingTimestamp": "1", "startingTimestampStrategy": "fail"},
        "startingTimestampStrategy",
        "is 'fail'; give latest or error",
    ),
    ({"maxRowsPerTrigger": "0"}, "maxRowsPerTrigger", "is '0'; give a whole number of at least 1"),
    ({"maxBytesPerTrigger": "64x"}, "maxBytesPerTrigger", "is '64x'; give a number of bytes"),
    ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger", "or one like 64m"),
    ({"minRowsPerTrigger": "-1"}, "minRowsPerTrigger", "is '-1'; give a whole number"),
    ({"maxTriggerDelay": "30"}, "maxTriggerDelay", "is '30'; give a time with its unit"),
    ({"minPartitions": "many"}, "minPartitions", "is 'many'; give a whole number"),
    ({"maxRowsPerPartition": "1.5"}, "maxRowsPerPartition", "is '1.5'; give a whole number"),
    ({"tags": "||"}, "tags", "names no tag; give 'a || b', or '*' for all"),
    ({"sql": "a >"}, "sql", "here; wanted is a property, a constant, NOT, or (\n  a >\n     ^"),
    ({"sql": "a = 1 ADN b"}, "sql", "Apache would ignore what follows\n  a = 1 ADN b\n        ^"),
    ({"view": "queues", "sql": "a = 1"}, "sql", "says nothing of view 'queues'; leave it out"),
    ({"keys": ","}, "keys", "names no key"),
    ({"keys": "[]"}, "keys", "names no key"),
    ({"keys": '["a"'}, "keys", "is no JSON list"),
    ({"keys": "[1]"}, "keys", "is '[1]'; give a list of strings"),
    ({"startingLogOffset": "-1"}, "startingLogOffset", "is '-1'; give a byte of the log"),
    ({"endingLogOffset": "end"}, "endingLogOffset", "is 'end'; give a byte of the log"),
    (
        {"startingLogOffset": "7", "endingLogOffset": "6"},
        "endingLogOffset",
        "is 6, before 'startingLogOffset', 7; nothing is between them",
    ),
    ({"failOnDamage": "false"}, "failOnDamage", "is for scan=commitlog"),
    ({"scan": "commitlog", "failOnDamage": "0.5"}, "failOnDamage", "give true or false"),
    ({"failOnDataLoss": "maybe"}, "failOnDataLoss", "is 'maybe'; give true or false"),
    ({"commitOffsets": "true"}, "commitOffsets", "needs a group; give 'consumerGroup' as well"),
    ({"view": "mesages"}, "view", "give messages or queues or index or groups or topics"),
    ({"scan": "log"}, "scan", "is 'log'; give queues or commitlog"),
    ({"scan": "commitlog", "view": "queues"}, "scan", "which has no view 'queues'"),
    ({"decompress": "2"}, "decompress", "is '2'; give true or false"),
    ({"view": "queues", "keys": "k"}, "keys", "says nothing of view 'queues'; leave it out"),
    ({"view": "queues", "decompress": "true"}, "decompress", "says nothing of view 'queues'"),
    ({"view": "topics"}, "topic", "says nothing of view 'topics'; leave it out, and choose rows"),
    ({"view": "groups", "topic": None, "tags": "a"}, "tags", "says nothing of view 'groups'"),
    ({"view": "index", "topic": None, "keys": "a"}, "keys", "says nothing of view 'index'"),
]  # fmt: skip

UNFIT_FOR_A_SCAN = {
    "consumerGroup": "g",
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "startingTimestampStrategy": "latest",
    "maxRowsPerPartition": "10",
}

GOOD: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"topics": ("orders",), "start": None, "end": None, "view": "messages", "columns": None}),
    ({"topic": "b, a,b,"}, {"topics": ("b", "a")}),
    ({"queues": '{"a": [0, "rocketpy:2"]}'}, {"queues": {"a": ("0", "rocketpy:2")}, "topics": ()}),
    ({"topicPattern": "a.*"}, {"topic_pattern": "a.*"}),
    ({"consumerGroup": "g"}, {"group": "g", "commits": True}),
    ({"consumerGroup": "g", "commitOffsets": "false"}, {"group": "g", "commits": False}),
    ({"commitOffsets": "no"}, {"commits": False}),
    ({"consumerGroup": "g", "startingOffsets": "group"}, {"start": NamedPosition.GROUP}),
    ({"startingOffsets": "Latest"}, {"start": NamedPosition.LATEST}),
    ({"endingOffsets": "earliest"}, {"end": NamedPosition.EARLIEST}),
    (
        {"startingOffsets": '{"orders": {"0": 42, "rocketpy:1": -2}}'},
        {"start": ByQueue("startingOffsets", {"orders": {"0": 42, "rocketpy:1": -2}})},
    ),
    ({"startingTimestamp": "5"}, {"start": AtTime("startingTimestamp", 5)}),
    ({"endingTimestamp": "5"}, {"end": AtTime("endingTimestamp", 5)}),
    (
        {"startingTimestamp": '{"a": {"0": 5, "b:1": "1970-01-01T00:00:01Z"}}'},
        {"start": TimesByQueue("startingTimestamp", {"a": {"0": 5, "b:1": 1000}})},
    ),
    (
        {"startingTimestamp": "5", "startingTimestampStrategy": "ERROR"},
        {"start": AtTime("startingTimestamp", 5, must_match=True)},
    ),
    ({"path": "store"}, {"path": str(Path.cwd() / "store")}),
    ({"path": "file:///a%20store"}, {"path": "/a store"}),
    ({"maxRowsPerTrigger": "7"}, {"max_rows": 7}),
    ({"maxBytesPerTrigger": "64 MB"}, {"max_bytes": 64 << 20}),
    ({"maxBytesPerTrigger": "100"}, {"max_bytes": 100}),
    ({"minRowsPerTrigger": "3", "maxTriggerDelay": "5m"}, {"min_rows": 3, "max_delay_s": 300}),
    ({"maxTriggerDelay": "500ms"}, {"max_delay_s": 0.5}),
    ({"minPartitions": "8"}, {"min_partitions": 8}),
    ({"maxRowsPerPartition": "9"}, {"max_partition_rows": 9}),
    ({"tags": "a || b"}, {"tags": TagFilter(frozenset("ab"))}),
    ({"tags": "*"}, {"tags": TagFilter(frozenset())}),
    ({"keys": "k1, k2,k1"}, {"keys": ("k1", "k2")}),
    ({"keys": '["k,1"]'}, {"keys": ("k,1",)}),
    ({"failOnDataLoss": "FALSE"}, {"fail_on_loss": False}),
    ({"scan": "commitlog", "failOnDamage": "false"}, {"fail_on_damage": False}),
    ({"startingLogOffset": "0", "endingLogOffset": "9"}, {"log_start": 0, "log_end": 9}),
    ({"decompress": "0"}, {"decompress": False}),
    ({"columns": "body, tags"}, {"columns": "body, tags"}),
    ({"scan": "commitlog"}, {"scans_log": True}),
    ({"scan": "queues"}, {"scans_log": False}),
    *(({"view": view}, {"view": view}) for view in VIEWS),
]  # fmt: skip


def options(**changes: str | None) -> dict[str, str]:
    """Return options with a path and a topic; None leaves one out."""
    merged = {"path": "store", "topic": "orders"} | changes
    return {name: value for name, value in merged.items() if value is not None}


def refusal(given: dict[str, str | None]) -> OptionError:
    with pytest.raises(OptionError) as raised:
        ReadOptions.parse(options(**given))
    return raised.value


@pytest.mark.parametrize(("given", "option", "words"), BAD)
def test_a_wrong_option_is_refused_with_its_name_and_a_remedy(
    given: dict[str, str | None], option: str, words: str
) -> None:
    error = refusal(given)
    assert error.option == option
    assert words in str(error)
    assert f"Option '{option}' of format 'rocketpy'" in str(error)


def test_every_option_is_in_the_table_of_wrong_ones() -> None:
    named = {option for _, option, _ in BAD} | {option for _, option, _ in MEMBER_BAD}
    without_wrong_values = {"columns"}  # names are checked by the schema
    assert {option.name for option in READ_OPTIONS} - named == without_wrong_values


def test_what_spark_adds_to_the_options_of_a_table_is_passed_over() -> None:
    """As it comes with `CREATE TABLE t USING rocketpy OPTIONS (path '/a b', topic 'orders')`."""
    asked = {"path": "file:/a b", "topic": "orders"}
    added = {
        "location": "file:/a b",
        "provider": "rocketpy",
        "owner": "me",
        "option.topic": "orders",
    }
    assert ReadOptions.parse(asked | added) == ReadOptions.parse(asked)
    assert ReadOptions.parse(asked | {"location": "/a b"}) == ReadOptions.parse(asked)


@pytest.mark.parametrize("given", [{"location": "elsewhere"}, {"location": "x", "path": None}])
def test_a_location_that_is_not_the_path_is_refused(given: dict[str, str | None]) -> None:
    assert "the store is named by 'path'" in str(refusal(given))


@pytest.mark.parametrize("added", [{"option.tag": "x"}, {"owners": "me"}])
def test_what_spark_does_not_add_to_a_table_is_refused(added: dict[str, str]) -> None:
    assert "there is no such option" in str(refusal({"provider": "rocketpy", **added}))


@pytest.mark.parametrize(("given", "option", "words"), BAD)
def test_every_refusal_survives_pickling(
    given: dict[str, str | None], option: str, words: str
) -> None:
    error = refusal(given)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.option, str(copy)) == (OptionError, option, str(error))
    assert words in str(copy)


@pytest.mark.parametrize(("option", "value"), UNFIT_FOR_A_SCAN.items())
def test_a_scan_of_the_log_refuses_what_is_said_of_queues(option: str, value: str) -> None:
    error = refusal({"scan": "commitlog", option: value})
    assert (error.option, "or scan=commitlog" in str(error)) == (option, True)


@pytest.mark.parametrize(("given", "expected"), GOOD)
def test_a_right_option_is_given_its_type(given: dict[str, str], expected: dict[str, Any]) -> None:
    bare = {"topicPattern", "queues"} & set(given) or given.get("view") in VIEWS[2:]
    parsed = ReadOptions.parse(options(**{"topic": None} | given) if bare else options(**given))
    assert {name: getattr(parsed, name) for name in expected} == expected


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.swapcase, str])
def test_names_are_known_however_they_are_spelt(spell: Any) -> None:
    given = options(startingOffsets="earliest", maxRowsPerPartition="7")
    parsed = ReadOptions.parse({spell(name): value for name, value in given.items()})
    assert (parsed.start, parsed.max_partition_rows) == (NamedPosition.EARLIEST, 7)


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [
        ("0", 0),
        ("2000-01-01T00:00:00Z", MILLENNIUM_MS),
        ("2000-01-01T01:00:00+01:00", MILLENNIUM_MS),
        ("2000-01-01T00:00:00", MILLENNIUM_MS),  # no zone: UTC
        ("2000-01-01", MILLENNIUM_MS),
        ("2000-01-01T00:00:00.001+00:00", MILLENNIUM_MS + 1),
        ("2000-01-01T00:00:00.000001+00:00", MILLENNIUM_MS + 1),  # what is stored at 0 is older
        ("1969-12-31T23:59:59.999+00:00", -1),
    ],
)
def test_times_are_milliseconds_or_iso(value: str, expected_ms: int) -> None:
    parsed = ReadOptions.parse(options(startingTimestamp=value))
    assert parsed.start == AtTime("startingTimestamp", expected_ms)


def test_a_batch_reads_everything_by_default_and_a_stream_what_is_new() -> None:
    parsed = ReadOptions.parse(options())
    assert (parsed.for_batch().start, parsed.for_batch().end) == (
        NamedPosition.EARLIEST,
        NamedPosition.LATEST,
    )
    assert parsed.for_stream().start is NamedPosition.LATEST


def test_both_start_where_their_group_is() -> None:
    parsed = ReadOptions.parse(options(consumerGroup="g"))
    assert parsed.for_batch().start is parsed.for_stream().start is NamedPosition.GROUP


@pytest.mark.parametrize(
    ("given", "option", "words"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets", "a stream has no end"),
        ({"endingTimestamp": "5"}, "endingTimestamp", "a stream has no end"),
        ({"endingTimestamp": '{"a": {"0": 5}}'}, "endingTimestamp", "a stream has no end"),
        ({"startingLogOffset": "0"}, "startingLogOffset", "is for batch reads"),
        ({"endingLogOffset": "9"}, "endingLogOffset", "is for batch reads"),
        ({"scan": "commitlog"}, "scan", "for batch reads only"),
        ({"view": "groups", "topic": None}, "view", "'groups' is for batch reads; use spark.read"),
    ],
)
def test_a_stream_refuses_what_is_for_batches_alone(
    given: dict[str, str | None], option: str, words: str
) -> None:
    parsed = ReadOptions.parse(options(**given))
    with pytest.raises(OptionError, match=words) as raised:
        parsed.for_stream()
    assert raised.value.option == option
