"""A stream's offsets in its consumer group: when they are committed, and which.

Other connectors got each of these wrong once; the comments say who.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pyspark.errors import StreamingQueryException
from tests.connector.streams import Stream, fail, reader_of, send

import rocketpy

MakeStream = Callable[..., Stream]

HOLD_LOCK = """
import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX, 1)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked_by_another_process(store: rocketpy.Store) -> Iterator[None]:
    """Hold the store's lock as a broker does that has the store open."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(store.path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        yield
        holder.communicate()


def billing(store: rocketpy.Store) -> dict[int, int]:
    return store.committed("billing", "orders")


def test_offsets_reach_the_group_with_each_batch_that_is_done_the_last_one_included(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-flink #19, pulsar-spark #176 and #178, SPARK-27549: consoles showed a wrong lag.
    send(store, *"abcde")
    seen = []
    orders = stream(topic="orders", consumerGroup="billing", maxRowsPerTrigger=2)
    orders.run(after=lambda _: seen.append(billing(store)))
    assert seen == [{}, {0: 2}, {0: 4}]
    assert billing(store) == {0: 5}


def test_a_running_stream_commits_without_another_message(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a", "b")
    query = stream(topic="orders", consumerGroup="billing").start()
    query.processAllAvailable()
    assert billing(store) == {0: 2}


def test_nothing_is_committed_before_the_sink_is_done(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-externals #230: what the sink then failed to write was never read again.
    orders = stream(topic="orders", consumerGroup="billing")
    send(store, "a", "b")
    orders.run()
    send(store, "c")
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        orders.run(after=fail)
    assert billing(store) == {0: 2}
    assert orders.run() == []  # the batch was seen before, in vain
    assert orders.rows() == ["a", "b", "c"]
    assert billing(store) == {0: 3}


def test_a_new_query_of_the_group_reads_nothing_twice_and_loses_nothing(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-externals #168, #876, #901, seatunnel #6665: `until - 1` was committed, and the last
    # message came again at each restart.
    send(store, "a", "b")
    send(store, "c", queue_id=1)
    assert stream(topic="orders", consumerGroup="billing").run() == [["a", "b", "c"]]
    send(store, "d")
    again = stream(topic="orders", consumerGroup="billing", startingOffsets="group")
    again.checkpoint = again.checkpoint.with_name("another")
    assert again.run() == [["d"]]


def test_a_stream_commits_nothing_if_it_is_told_so(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a")
    store.commit("billing", "orders", {0: 0})
    orders = stream(topic="orders", consumerGroup="billing", commitOffsets=False)
    assert orders.run() == [["a"]]
    assert billing(store) == {0: 0}


def test_offsets_that_the_group_lost_are_restored_from_the_checkpoint(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-flink #76 and #81, seatunnel #6249 and #9940: a restore lost or overwrote offsets.
    send(store, "a", "b")
    orders = stream(topic="orders", consumerGroup="billing")
    orders.run()
    with store._store.locked():
        store.group_offsets.delete("billing")
    assert orders.run() == []
    assert billing(store) == {0: 2}


def test_a_stream_does_not_touch_other_groups_and_topics(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a")
    send(store, "b", topic="audit")
    store.commit("audit", "orders", {0: 1})
    store.commit("billing", "audit", {0: 1})
    stream(topic="orders", consumerGroup="billing").run()
    assert sorted(store.group_offsets.all()) == [
        ("audit", "orders", 0, 1),
        ("billing", "audit", 0, 1),
        ("billing", "orders", 0, 1),
    ]


def test_a_queue_without_new_messages_does_not_fail_the_batch(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-externals #148.
    store.create_topic("orders", 3)
    orders = stream(topic="orders", consumerGroup="billing")
    query = orders.start()
    for body, queue_id in [("a", 1), ("b", 1), ("c", 2)]:
        send(store, body, queue_id=queue_id)
        query.processAllAvailable()
    assert orders.rows() == ["a", "b", "c"]
    assert billing(store) == {0: 0, 1: 2, 2: 1}


def test_offsets_that_a_filter_skips_do_not_fail_the_stream(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    # rocketmq-externals' rocketmq-spark expected offsets without gaps.
    store.create_topic("orders", 1)
    for body, tags in [("a", "paid"), ("b", "new"), ("c", "paid"), ("d", "new"), ("e", "new")]:
        store.send("orders", body, tags=tags)
    orders = stream(topic="orders", consumerGroup="billing", tags="paid", maxRowsPerTrigger=3)
    assert orders.run() == [["a", "c"], []]
    assert billing(store) == {0: 5}


def test_streams_of_one_group_do_not_share_out_the_queues(store: rocketpy.Store) -> None:
    # Event Hubs connector #371 and #392: the source fought with the broker's own rebalancing.
    for queue_id in range(4):
        send(store, "a", queue_id=queue_id)
    for reader in [reader_of(store, topic="orders", consumerGroup="billing") for _ in range(2)]:
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        assert list(end["offsets"]["orders"].values()) == [1, 1, 1, 1]


def test_a_store_that_a_broker_has_locked_does_not_stop_a_stream(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, *"abc")
    orders = stream(topic="orders", consumerGroup="billing", maxRowsPerTrigger=1)
    with locked_by_another_process(store):
        assert orders.run() == [["a"], ["b"], ["c"]]
    assert billing(store) == {}
    assert orders.run() == []
    assert billing(store) == {0: 3}


def test_a_commit_that_failed_is_logged_and_made_up_for_before_available_now_ends(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    send(store, "a", "b")
    reader = reader_of(store, topic="orders", consumerGroup="billing", maxRowsPerTrigger=1)
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    with locked_by_another_process(store), caplog.at_level(logging.WARNING):
        second = reader.latestOffset(first, limit)
    assert "offsets of group billing were not committed" in caplog.text
    assert "locked by process" in caplog.text
    assert reader.latestOffset(second, limit) == second
    assert billing(store) == {0: 2}


def test_a_config_folder_that_cannot_be_written_does_not_stop_a_stream(
    stream: MakeStream, store: rocketpy.Store
) -> None:
    send(store, "a", "b")
    in_the_way = store.path / "config" / "consumerOffset.json"
    in_the_way.mkdir()
    orders = stream(
        topic="orders", consumerGroup="billing", startingOffsets="earliest", maxRowsPerTrigger=1
    )
    assert orders.run() == [["a"], ["b"]]
    in_the_way.rmdir()
    assert orders.run() == []
    assert billing(store) == {0: 2}
