from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import FilterRefusedError
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulled import Pulled, PullFilter
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message_queue import MessageQueue

A0 = MessageQueue("orders", "broker-a", 0)
B0 = MessageQueue("orders", "broker-b", 0)
SCHEMA = select(["broker", "queue_offset", "body"])


@pytest.fixture
def filled(cluster: Cluster) -> Cluster:
    """A topic with 100 messages in a queue of each broker: every fourth is tagged `paid`."""
    ClusterTopics(cluster).create("orders", 1)
    drafts = [
        MessageDraft(
            body=b"%d" % (number // 2),
            tags="paid" if number // 2 % 4 == 0 else "open",
            properties={"price": str(number // 2)},
            keys=[f"o-{number // 2}"],
        )
        for number in range(200)
    ]
    Producer(cluster).send_many("orders", drafts)
    return cluster


def rows(pulled: object) -> list[bytes]:
    batches = record_batches(pulled, SCHEMA)  # type: ignore[arg-type]
    return [body for batch in batches for body in batch["body"].to_pylist()]


def test_a_pull_gives_messages_and_where_to_read_on(filled: Cluster) -> None:
    pulled = Puller(filled).pull(A0, 10, most=5)
    assert (pulled.next_offset, pulled.first, pulled.end) == (15, 0, 100)
    assert rows([pulled]) == [b"10", b"11", b"12", b"13", b"14"]


@pytest.mark.parametrize(("asked", "next_offset"), [(-5, 0), (100, 100), (1000, 100)])
def test_offsets_that_are_not_there_are_answered(
    filled: Cluster, asked: int, next_offset: int
) -> None:
    pulled = Puller(filled).pull(A0, asked)
    assert (pulled.next_offset, bytes(pulled.records)) == (next_offset, b"")
    assert pulled.is_moved == (asked != 100)


@pytest.mark.parametrize("most", [1, 7, 32, 1024])
def test_all_of_a_queue_is_read_once_however_much_a_pull_gives(filled: Cluster, most: int) -> None:
    for queue in (A0, B0):
        found = rows(Puller(filled, most_messages=most).read(queue, 3, 98))
        assert found == [b"%d" % number for number in range(3, 98)]


@pytest.mark.parametrize(
    "wanted", [PullFilter.of(tags="paid"), PullFilter.of(sql="price IS NOT NULL AND TAGS = 'paid'")]
)
def test_the_broker_filters(filled: Cluster, wanted: PullFilter) -> None:
    found = rows(Puller(filled, wanted=wanted, most_messages=4).read(A0, 0, 100))
    assert found == [b"%d" % number for number in range(0, 100, 4)]


def test_a_filter_that_the_broker_cannot_read_is_refused_by_name(filled: Cluster) -> None:
    with pytest.raises(FilterRefusedError, match="mend the filter"):
        Puller(filled, wanted=PullFilter.of(sql="price >")).pull(A0, 0)


def test_messages_are_found_by_key_on_all_brokers(filled: Cluster) -> None:
    found = pa.Table.from_batches(record_batches(Puller(filled).by_key("orders", "o-7"), SCHEMA))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
        ("broker-a", 7, b"7"),
        ("broker-b", 7, b"7"),
    ]
    assert rows(Puller(filled).by_key("orders", "o-999")) == []


def test_a_follower_gets_what_comes_from_every_broker(filled: Cluster) -> None:
    with Cluster(filled.address) as other:
        following = Puller(other).follow({A0: 99, B0: 100})
        assert rows(next(following)) == [b"99"]
        Producer(filled).send_many("orders", [MessageDraft(body=b"new")] * 2)
        assert came(following, 2) == [b"new"] * 2
        Producer(filled).send_many("orders", [MessageDraft(body=b"newer")] * 4)
        assert came(following, 4) == [b"newer"] * 4


def came(following: object, count: int) -> list[bytes]:
    found: list[bytes] = []
    for pulled in islice(following, 30):  # type: ignore[call-overload]
        found += rows(pulled)
        if len(found) >= count:
            break
    return found


def test_a_follower_finds_a_broker_that_was_away(servers: LocalBroker, filled: Cluster) -> None:
    following = Puller(filled).follow({A0: 100, B0: 100})
    servers.stop_broker(1)
    assert rows(next(following)) == []
    servers.start_broker(1)
    with Cluster(filled.address) as other:
        for queue_id in (0, 0):
            Producer(other).send("orders", MessageDraft(body=b"back", queue_id=queue_id))
    assert came(following, 2) == [b"back"] * 2


def test_queues_that_a_topic_gets_are_followed_too(filled: Cluster) -> None:
    with Cluster(filled.address) as other:
        following = Puller(other).follow({A0: 100, B0: 100}, grows=True)
        assert next(following) == []
        ClusterTopics(filled).create("orders", 2)
        other.forget("broker-a")  # else the route is kept for half a minute
        drafts = [MessageDraft(body=b"new", queue_id=1)] * 2
        Producer(filled).send_many("orders", drafts)
        assert came(following, 2) == [b"new"] * 2


def test_tails_leave_no_group_behind(filled: Cluster) -> None:
    before = ClusterGroups(filled).settings()
    Puller(filled).pull(A0, 0)
    assert ClusterGroups(filled).settings() == before


def test_bytes_that_are_no_records_are_refused(filled: Cluster) -> None:
    good = Puller(filled).pull(A0, 0, most=2)
    cut = Pulled(A0, 0, 2, 0, 100, bytes(good.records)[:-1])
    with pytest.raises(RecordError, match="no record"):
        rows([cut])
    damaged = bytearray(good.records)
    damaged[-60] ^= 1
    with pytest.raises(RecordError):
        rows([Pulled(A0, 0, 2, 0, 100, bytes(damaged))])
