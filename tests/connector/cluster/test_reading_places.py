"""Batches and streams read the same from a folder, from our brokers and from Apache's."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.connector.cluster.conftest import MakeTopic
from tests.connector.cluster.places import ClusterPlace, Place
from tests.connector.cluster.queries import SCHEMA, Query, Rows, batch, parsed, texts

import rocketpy
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.cluster import queues as cluster_queues
from rocketpy.connector.offsets import by_topic
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import spark_schema

SCHEMA_OF_TIMES = spark_schema("messages", "store_timestamp")


def expected(*queues: MessageQueue, first: int = 0, last: int = 3) -> Rows:
    return sorted(
        (queue, number, f"{queue.key}-{number}")
        for queue in queues
        for number in range(first, last)
    )


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_has_all_queues_and_a_task_for_each(place: Place, make_topic: MakeTopic) -> None:
    topic, queues = make_topic()
    given = place.options | {"topic": topic}
    assert batch(given) == expected(*queues)
    assert len(BatchReader(parsed({**given}), SCHEMA).partitions()) == len(queues)


def test_topics_of_a_namespace_are_read_by_the_names_that_brokers_have(place: Place) -> None:
    (queue,) = place.create("shop%bills", 1)[:1]
    if not isinstance(place, ClusterPlace):
        place.send(queue, "bill-1")
    else:
        with rocketpy.connect(place.options["namesrvAddr"], namespace="shop") as shop:
            receipt = shop.send("bills", "bill-1", select=lambda queues: queues[0])
        broker, queue_id = receipt.queue.broker, receipt.queue.queue_id
        place.wait_for(MessageQueue(queue.topic, broker, queue_id), 1)
    assert texts(batch({**place.options, "topic": "shop%bills"})) == ["bill-1"]
    assert texts(Query({**place.options, "topicPattern": "shop%.*"}).run()) == ["bill-1"]


def test_one_task_does_not_read_everything(place: Place, make_topic: MakeTopic) -> None:
    topic, (queue, *_) = make_topic(messages=0)
    place.send(queue, *(f"{queue.key}-{number}" for number in range(20)))
    given = {**place.options, "topic": topic, "minPartitions": 4}
    assert len(BatchReader(parsed(given), SCHEMA).partitions()) == 4
    assert batch(given) == expected(queue, last=20)


def test_offsets_by_queue_begin_and_end_a_batch(place: Place, make_topic: MakeTopic) -> None:
    topic, (first, second, *others) = make_topic()
    start = {first: 1, second: -1} | dict.fromkeys(others, -1)
    end = {first: 2}
    given = {
        **place.options,
        "topic": topic,
        "startingOffsets": json.dumps(by_topic(start)),
        "endingOffsets": json.dumps(by_topic(end)),
    }
    assert batch(given) == expected(first, first=1, last=2)


def test_a_queue_that_is_not_there_is_named(place: Place, make_topic: MakeTopic) -> None:
    topic, _ = make_topic(messages=0)
    nowhere = {topic: {"nowhere:7": 0}}
    with pytest.raises(OptionError, match=f"there is no queue {topic}/nowhere:7; there are "):
        batch({**place.options, "topic": topic, "startingOffsets": json.dumps(nowhere)})


def test_times_have_the_rule_of_a_folder(place: Place, make_topic: MakeTopic) -> None:
    topic, (queue, *others) = make_topic(messages=0)
    times_ms = []
    for number in range(4):
        place.send(queue, f"{queue.key}-{number}")
        columns = {"columns": "store_timestamp", "topic": topic, **place.options}
        reader = BatchReader(parsed(columns), SCHEMA_OF_TIMES)
        stored = [row for part in reader.partitions() for row in reader.read(part)]
        latest = max(time for each in stored for time in each.column(0).to_pylist())
        times_ms.append(round(latest.timestamp() * 1000))
        time.sleep(0.01)
    for number, time_ms in enumerate(times_ms):
        given = {**place.options, "topic": topic}
        found = batch(given | {"startingTimestamp": time_ms})
        assert found == expected(queue, first=number, last=4)
        assert batch(given | {"endingTimestamp": time_ms}) == expected(queue, last=number)
        later = batch(given | {"startingTimestamp": time_ms + 1})
        assert later == expected(queue, first=number + 1, last=4)
    assert batch({**place.options, "topic": topic, "startingTimestamp": 0}) == expected(
        queue, last=4
    )
    assert others


def test_tags_sql_and_keys_narrow_a_batch(place: Place, make_topic: MakeTopic) -> None:
    topic, queues = make_topic()
    given = {**place.options, "topic": topic}
    odd = expected(*queues, first=1, last=2)
    assert batch(given | {"tags": "odd"}) == odd
    assert batch(given | {"tags": "odd || none"}) == odd
    assert batch(given | {"sql": "number = '1'"}) == odd
    key = f"k{queues[0].key}-2"
    assert batch(given | {"keys": key}) == expected(queues[0], first=2)


def test_an_empty_topic_is_no_rows(place: Place, make_topic: MakeTopic) -> None:
    topic, _ = make_topic(messages=0)
    assert batch({**place.options, "topic": topic}) == []
    assert Query({**place.options, "topic": topic}).available_now() == []


def test_a_topic_that_is_missing_is_named(place: Place, make_topic: MakeTopic) -> None:
    make_topic(messages=0)
    with pytest.raises(TopicNotFoundError, match="no topic 'nosuch'"):
        batch({**place.options, "topic": "nosuch"})


# --- streams -------------------------------------------------------------------------------------


def test_available_now_reads_each_message_once_in_bounded_batches(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic(messages=5)
    query = Query({**place.options, "topic": topic, "maxRowsPerTrigger": 3})
    batches = query.available_now(3)
    assert max(map(len, batches)) == 3
    assert sorted(row for rows in batches for row in rows) == expected(*queues, last=5)


def test_a_restart_goes_on_at_the_checkpoint_not_at_0(place: Place, make_topic: MakeTopic) -> None:
    topic, (queue, *_) = make_topic()
    query = Query({**place.options, "topic": topic})
    assert len(query.run()) > 0
    query.restart()
    assert query.run() == []  # a batch of no messages is none
    place.send(queue, f"{queue.key}-3")
    query.restart()
    assert query.run() == expected(queue, first=3, last=4)


def test_a_batch_is_read_again_as_it_was_planned(place: Place, make_topic: MakeTopic) -> None:
    topic, (queue, *_) = make_topic()
    query = Query({**place.options, "topic": topic})
    end = query.next_end()
    place.send(queue, "later")
    query.restart()
    again = [*query.reader.partitions(query.at, end)]
    assert "later" not in [
        body.as_py().decode()
        for part in again
        for each in query.reader.read(part)
        for body in each.column("body")
    ]


def test_a_queue_without_new_messages_does_not_fail_a_batch(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, (queue, *_) = make_topic()
    query = Query({**place.options, "topic": topic})
    query.run()
    for number in range(3, 6):
        place.send(queue, f"{queue.key}-{number}")
        assert query.run() == expected(queue, first=number, last=number + 1)


def test_bytes_bound_a_batch(place: Place, make_topic: MakeTopic) -> None:
    topic, queues = make_topic(messages=4)
    query = Query({**place.options, "topic": topic, "maxBytesPerTrigger": 1000})
    batches = query.available_now(1)
    assert len(batches) > 1
    assert sorted(row for rows in batches for row in rows) == expected(*queues, last=4)


def test_a_new_queue_is_read_from_its_begin(
    place: Place, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_queues, "_ROUTES_KEPT_S", 0.0)
    topic, queues = make_topic()
    query = Query({**place.options, "topic": topic})
    query.run()
    new = [queue for queue in place.create(topic, 3) if queue not in queues]
    place.send(new[-1], f"{new[-1].key}-0")
    found = query.run()
    while not found:  # Apache's name server hears of it a moment later
        time.sleep(0.05)
        found = query.run()
    assert found == expected(new[-1], last=1)


# --- groups --------------------------------------------------------------------------------------


def test_a_groups_offset_is_the_next_one_to_read_after_the_last_batch(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    group = f"g-{topic}"
    given = {**place.options, "topic": topic, "consumerGroup": group}
    query = Query({**given, "startingOffsets": "group"})
    assert len(texts([row for rows in query.available_now(4) for row in rows])) == 3 * len(queues)
    assert place.committed(group, queues) == dict.fromkeys(queues, 3)
    place.send(queues[0], f"{queues[0].key}-3")
    assert batch(given) == expected(queues[0], first=3, last=4)
    assert place.committed(group, queues) == dict.fromkeys(queues, 3)  # a batch moves nothing


def test_a_group_that_never_committed_begins_at_the_first_message(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    assert batch({**place.options, "topic": topic, "consumerGroup": f"new-{topic}"}) == expected(
        *queues
    )


def test_offsets_are_not_committed_before_the_batch_is_done(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    group = f"g-{topic}"
    query = Query({**place.options, "topic": topic, "consumerGroup": group})
    query.run()
    assert {*place.committed(group, queues).values()} <= {0}
    assert query.run() == []
    assert place.committed(group, queues) == dict.fromkeys(queues, 3)


# --- tables --------------------------------------------------------------------------------------


def table(place: Place, view: str) -> list[dict[str, Any]]:
    options = ReadOptions.parse({**place.options, "view": view})
    reader = BatchReader(options, spark_schema(view, None))
    return [
        row
        for part in reader.partitions()
        for each in reader.read(part)
        for row in each.to_pylist()
    ]


def test_a_groups_lag_is_what_it_has_not_read(place: Place, make_topic: MakeTopic) -> None:
    topic, queues = make_topic()
    group = f"g-{topic}"
    Query({**place.options, "topic": topic, "consumerGroup": group}).available_now()
    place.send(queues[0], "another")
    rows = {
        (row["broker"], row["queue_id"]): row
        for row in table(place, "groups")
        if row["consumer_group"] == group
    }
    assert rows.keys() == {(queue.broker, queue.queue_id) for queue in queues}
    for queue in queues:
        row = rows[queue.broker, queue.queue_id]
        behind = int(queue == queues[0])
        assert (row["topic"], row["committed_offset"], row["min_offset"]) == (topic, 3, 0)
        assert (row["end_offset"], row["lag"]) == (3 + behind, behind)
        assert (row["lag_seconds"] >= 0) if behind else (row["lag_seconds"] == 0)


def test_topics_have_their_queues_and_messages(place: Place, make_topic: MakeTopic) -> None:
    (full, queues), (empty, _) = make_topic(), make_topic(messages=0)
    rows = {row["topic"]: row for row in table(place, "topics")}
    assert (rows[full]["kind"], rows[full]["queues"]) == ("normal", len(queues))
    assert (rows[full]["is_readable"], rows[full]["is_writable"]) == (True, True)
    assert rows[full]["messages"] == 3 * len(queues)
    assert rows[full]["oldest_timestamp"] <= rows[full]["newest_timestamp"]
    assert (rows[empty]["messages"], rows[empty]["oldest_timestamp"]) == (0, None)
