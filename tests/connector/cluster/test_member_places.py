"""Streams share a group alike on a folder, on our brokers and on Apache's."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.connector.cluster.conftest import MakeTopic
from tests.connector.cluster.places import ClusterPlace, Place
from tests.connector.cluster.queries import Query, Rows
from tests.connector.cluster.sharing import (
    MemberQuery,
    ask_anew,
    bury_the_dead,
    group_of,
    registry_of,
)

from rocketpy.broker_core.errors import MemberReplacedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.catalogue import parse_strategy
from rocketpy.connector.cluster import queues as cluster_queues


@pytest.fixture(autouse=True)
def _looks(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_anew(monkeypatch)


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Let no lease outlive its test."""
    QUERIES.clear()
    yield
    for query in QUERIES:
        query.die()


QUERIES: list[MemberQuery] = []


def joined(place: Place, topic: str, *names: str, **more: object) -> list[MemberQuery]:
    """Return queries that are to share a topic; none has planned yet."""
    queries = [MemberQuery(place, topic, name, **more) for name in names]
    QUERIES.extend(queries)
    return queries


def of(*queues: MessageQueue, first: int = 0, last: int = 3) -> Rows:
    return sorted((queue, n, f"{queue.key}-{n}") for queue in queues for n in range(first, last))


def test_queues_change_hands_when_the_batch_is_done_and_none_is_read_twice(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    first, second = joined(place, topic, "a", "b")
    first.plan()
    assert second.batch() == []
    assert first.finish() == of(*queues)
    assert second.batch() == []  # done, but not committed yet
    assert first.batch() == []
    for queue in queues:
        place.send(queue, f"{queue.key}-3")
    halves = second.batch(), first.batch()
    half = len(queues) // 2
    assert halves == (of(*queues[half:], first=3, last=4), of(*queues[:half], first=3, last=4))
    second.batch()
    second.leave()
    first.batch()
    assert first.holds() == queues
    assert place.committed(group_of(topic), queues) == dict.fromkeys(queues, 4)


def test_what_a_dead_member_had_in_hand_is_read_by_its_successor_and_it_commits_nothing(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    first, second = joined(place, topic, "a", "b")
    first.plan()
    first.die()
    second.batch()
    bury_the_dead(place, topic)
    assert second.batch() == of(*queues)
    first.finish()  # it was only slow
    assert first.batch() == []
    assert first.holds() == []
    assert {*place.committed(group_of(topic), queues).values()} == {0}
    second.batch()
    first.batch()
    assert len(first.holds()) == len(second.holds()) == len(queues) // 2
    assert place.committed(group_of(topic), queues) == dict.fromkeys(queues, 3)


def test_a_batch_is_read_again_as_it_was_planned_by_the_same_member(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    (query,) = joined(place, topic, "a")
    query.plan()
    place.send(queues[0], "later")
    query.die()
    query.restart()
    assert query.finish() == of(*queues)
    assert query.batch() == [(queues[0], 3, "later")]


def test_a_second_query_of_the_same_name_stops_the_first(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, _ = make_topic()
    first, again = joined(place, topic, "a", "a")
    first.batch()
    first.batch()
    assert again.batch() == []
    with pytest.raises(MemberReplacedError, match="give each query a member name of its own"):
        first.batch()


def test_where_the_group_never_read_the_options_say_where_to_begin(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    first, second = joined(place, topic, "a", "b", startingOffsets="latest")
    assert first.batch() == []
    assert place.committed(group_of(topic), queues) == dict.fromkeys(queues, 3)
    first.die()
    place.send(queues[0], f"{queues[0].key}-3")
    second.batch()
    bury_the_dead(place, topic)
    assert second.batch() == of(queues[0], first=3, last=4)  # not passed over


def test_a_new_queue_is_shared_and_a_generation_made_elsewhere_is_followed(
    place: Place, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_queues, "_ROUTES_KEPT_S", 0.0)
    topic, queues = make_topic()
    first, second = joined(place, topic, "a", "b")
    more = place.create(topic, 3)
    while sorted(first.holds() + second.holds()) != more:  # Apache's name server hears of it late
        time.sleep(0.01)
        first.batch()
        second.batch()
    assert len(more) > len(queues)
    with registry_of(place) as registry:
        registry.rebalance(group_of(topic), parse_strategy("circle"), made_by="a test")
    for query in (first, second, first, second):
        query.batch()
    assert (first.holds(), second.holds()) == (more[::2], more[1::2])


def test_available_now_of_two_members_reads_each_message_once(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    first, second = joined(place, topic, "a", "b")
    for query in (first, second, first, second):
        query.batch()
    for queue in queues:
        place.send(queue, *(f"{queue.key}-{number}" for number in range(3, 6)))
    read = [row for query in (first, second) for rows in query.available_now() for row in rows]
    assert sorted(read) == of(*queues, first=3, last=6)
    with registry_of(place) as registry:
        assert registry.members(group_of(topic)) == {}  # they left
    assert place.committed(group_of(topic), queues) == dict.fromkeys(queues, 6)


def test_a_broadcasting_member_goes_on_where_it_was_and_the_groups_offsets_stay(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    broadcasting = {"messageModel": "broadcasting", "startingOffsets": "group"}
    given = {**place.options, "topic": topic, "consumerGroup": group_of(topic), **broadcasting}
    for name in ("one@eu", "two@eu"):
        read = [row for rows in Query({**given, "member": name}).available_now() for row in rows]
        assert sorted(read) == of(*queues)
    place.send(queues[0], f"{queues[0].key}-3")
    again = Query({**given, "member": "one@eu"}).available_now()
    assert again == [of(queues[0], first=3, last=4)]
    assert {*place.committed(group_of(topic), queues).values()} <= {0}


def test_members_leave_a_topic_of_their_own_that_no_pattern_reads(
    place: Place, make_topic: MakeTopic
) -> None:
    topic, queues = make_topic()
    (query,) = joined(place, topic, "a")
    query.batch()
    everything = {"topicPattern": f".*{topic}", "startingOffsets": "earliest"}
    read = [row for rows in Query({**place.options, **everything}).available_now() for row in rows]
    assert {row[0] for row in read} == {*queues}
    if isinstance(place, ClusterPlace):
        settings = place.cluster.route(f"rocketpy-members-{group_of(topic)}", fresh=True)
        assert len(settings.writable()) == 1  # its home; the other brokers know of it
        assert settings.broker_names == place.cluster.masters()
