"""A topic together with what its group sent back."""

from __future__ import annotations

import pytest
from tests.connector.conftest import Load
from tests.connector.streams import reader_of, send
from tests.connector.test_new_and_lost_queues import plan

import rocketpy
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions

RETRY = "%RETRY%billing"


@pytest.mark.parametrize(
    "source", [{"topic": "orders"}, {"topicPattern": "ord.*"}, {"queues": '{"orders": [0]}'}]
)
def test_the_retry_topic_is_read_once_it_is_there(
    store: rocketpy.Store, source: dict[str, str]
) -> None:
    send(store, "a")
    reader = reader_of(store, **source, consumerGroup="billing", includeRetry=True)
    start = reader.initialOffset()
    first, bodies = plan(reader, start)
    assert bodies == ["a"]
    send(store, "retried", topic=RETRY)
    send(store, "not mine", topic="%RETRY%other")
    send(store, "b")
    second, bodies = plan(reader, first)
    assert sorted(bodies) == ["b", "r"]
    reader.commit(second)
    assert store.committed("billing", RETRY) == {0: 1}
    assert store.committed("billing", "orders") == {0: 2}


def test_rows_say_where_they_are_and_properties_where_they_were(
    store: rocketpy.Store, load: Load
) -> None:
    store.create_topic("orders", 1)
    store.send("orders", "a")
    store.create_topic(RETRY, 1)
    store.send(RETRY, "b", properties={"RETRY_TOPIC": "orders"})
    rows = load(topic="orders", consumerGroup="billing", includeRetry="true").collect()
    told = {(row["topic"], row["properties"].get("RETRY_TOPIC")) for row in rows}
    assert told == {("orders", None), (RETRY, "orders")}
    assert load(topic="orders", consumerGroup="billing").count() == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scan": "commitlog", "includeRetry": "true"}, "leave it out"),
        ({"view": "topics", "includeRetry": "true"}, "says nothing of view"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=rf"includeRetry.*{words}"):
        ReadOptions.parse({"path": "p", **options})
