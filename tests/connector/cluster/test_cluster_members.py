"""Members on a cluster of ours: late ones, brokers that are away, others who consume."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.connector.cluster.places import OurPlace
from tests.connector.cluster.queries import Rows, end_planning
from tests.connector.cluster.sharing import (
    LONG_AFTER_MS,
    MemberQuery,
    ask_anew,
    bury_the_dead,
    group_of,
)

import rocketpy
from rocketpy.broker_core.client.topics import create_command
from rocketpy.broker_core.clock import ManualClock, SystemClock
from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings
from rocketpy.connector import consumer_watch
from rocketpy.connector.cluster import queues as cluster_queues
from rocketpy.connector.cluster.members import ClusterMembers
from rocketpy.connector.consumer_watch import GroupConsumedError
from rocketpy.connector.topics import UnreachableError

TOPIC = "orders"
A, B = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-b", 0)
BOTH = [A, B]


@pytest.fixture(scope="module")
def servers() -> Iterator[OurPlace]:
    with local_broker(brokers=2) as running:
        place = OurPlace(running)
        with place.cluster:
            yield place


@pytest.fixture
def place(servers: OurPlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[OurPlace]:
    """Both brokers run at the begin, each with three messages in its one queue."""
    ask_anew(monkeypatch)
    for name in ("_RANGES_KEPT_S", "_ROUTES_KEPT_S", "_PASSED_OVER_S"):
        monkeypatch.setattr(cluster_queues, name, 0.0)
    servers.servers.reset()
    servers.create(TOPIC, 1)
    for queue in BOTH:
        servers.send(queue, *(f"{queue.key}-{number}" for number in range(3)))
    yield servers
    end_planning()
    for index, broker in enumerate(servers.servers.brokers):
        if not broker.is_running:
            servers.servers.start_broker(index)


def of(*queues: MessageQueue, first: int = 0, last: int = 3) -> Rows:
    return [(queue, n, f"{queue.key}-{n}") for queue in queues for n in range(first, last)]


def long_after() -> ManualClock:
    clock = ManualClock(SystemClock().now_ms())
    clock.advance(SystemClock().steady_ms() + LONG_AFTER_MS)
    return clock


def home(place: OurPlace) -> int:
    """Return which of the brokers keeps the members."""
    route = place.cluster.route(f"rocketpy-members-{group_of(TOPIC)}", fresh=True)
    (queue,) = route.writable()
    return [broker.name for broker in place.servers.brokers].index(queue.broker)


def test_a_member_that_is_stopped_between_its_look_and_its_commit_commits_nothing(
    place: OurPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, other = MemberQuery(place, TOPIC, "a"), MemberQuery(place, TOPIC, "b")
    assert late.batch() == of(*BOTH)
    late.die()
    keeper = late.reader._backend.members()
    assert isinstance(keeper, ClusterMembers)
    asked = keeper.committed

    def be_stopped(group: str, topics: tuple[str, ...]) -> dict[MessageQueue, int]:
        """Be stopped for longer than the lease; the other one goes on meanwhile."""
        found = asked(group, topics)
        monkeypatch.setattr(keeper, "committed", asked)
        monkeypatch.setattr(keeper, "clock", long_after())
        other.batch()
        bury_the_dead(place, TOPIC)
        assert other.batch() == of(*BOTH)  # what the late one had not committed
        place.send(A, f"{A.key}-3")
        assert other.batch() == of(A, first=3, last=4)
        other.batch()
        assert place.committed(group_of(TOPIC), BOTH) == {A: 4, B: 3}
        return found

    member = late._consumer._member
    enter = member._enter

    def enter_and_be_stopped(topics: tuple[str, ...]) -> None:
        enter(topics)
        monkeypatch.setattr(keeper, "committed", be_stopped)

    monkeypatch.setattr(member, "_enter", enter_and_be_stopped)
    assert late.batch() == []
    assert place.committed(group_of(TOPIC), BOTH) == {A: 4, B: 3}  # not back to 3
    assert other.holds() == BOTH
    other.die()


def read_until(query: MemberQuery, holds: Callable[[], bool]) -> list[str]:
    """Return what a member reads until something holds."""
    bodies: list[str] = []
    while not holds():
        bodies += [body for _, _, body in query.batch()]
        time.sleep(0.01)
    return bodies


def test_a_process_that_was_paused_for_longer_than_its_lease_reads_and_commits_nothing_twice(
    place: OurPlace, tmp_path: Path
) -> None:
    def is_committed(end: int) -> bool:
        return place.committed(group_of(TOPIC), BOTH) == dict.fromkeys(BOTH, end)

    def send(number: int) -> None:
        for queue in BOTH:
            place.send(queue, f"{queue.key}-{number}")

    command = [sys.executable, "-m", "tests.connector.cluster.member_process"]
    printed = tmp_path / "printed"
    with printed.open("wb") as out:
        paused = subprocess.Popen(
            [*command, place.servers.namesrv_addr, TOPIC, "a", "3s"], stdout=out
        )
    try:
        while not is_committed(3):
            assert paused.poll() is None
            time.sleep(0.01)
        os.kill(paused.pid, signal.SIGSTOP)
        other = MemberQuery(place, TOPIC, "b", memberLease="3s")
        send(3)
        bodies = read_until(other, lambda: is_committed(4))
        os.kill(paused.pid, signal.SIGCONT)
        for number in range(4, 8):  # the two take turns again
            send(number)
            bodies += read_until(other, partial(is_committed, number + 1))
        bodies += read_until(other, lambda: len(other.holds()) == 1)
        other.die()
    finally:
        paused.kill()
        paused.wait()
    bodies += printed.read_text().split()
    assert sorted(bodies) == sorted(body for _, _, body in of(*BOTH, last=8))


def test_while_the_home_is_away_members_read_on_until_their_leases_are_over(
    place: OurPlace, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = 1 - zlib.crc32(group_of("solo").encode()) % 2  # the home is the other one
    queue = MessageQueue("solo", place.servers.brokers[index].name, 0)
    settings = TopicSettings(name="solo", read_queues=1, write_queues=1)
    place.cluster.ask_broker(queue.broker, create_command(settings))
    while "solo" not in place.cluster.topics():
        time.sleep(0.01)
    query = MemberQuery(place, "solo", "a")
    query.batch()
    query.die()
    place.servers.stop_broker(1 - index)
    place.send(queue, f"{queue.key}-0")
    assert query.batch() == of(queue, last=1)
    assert "member a cannot follow its group now: topics cannot be reached" in caplog.text
    keeper = query.reader._backend.members()
    monkeypatch.setattr(keeper, "clock", long_after())
    place.send(queue, f"{queue.key}-1")
    assert query.batch() == []
    place.servers.start_broker(1 - index)
    assert query.batch() == of(queue, first=1, last=2)
    query.batch()
    assert place.committed(group_of("solo"), [queue]) == {queue: 2}


def test_a_member_waits_for_a_broker_of_its_topics_and_stops_if_that_takes_too_long(
    place: OurPlace,
) -> None:
    query = MemberQuery(place, TOPIC, "a", retryTimeout="1s")
    query.batch()
    query.die()
    place.servers.stop_broker(1)
    with pytest.raises(UnreachableError, match=r"orders on broker-b \(.*Nothing is lost"):
        query.batch()
    place.servers.start_broker(1)
    place.send(B, f"{B.key}-3")
    assert query.batch() == of(B, first=3, last=4)


def test_members_go_on_when_the_home_was_restarted_between_two_batches(place: OurPlace) -> None:
    first, second = MemberQuery(place, TOPIC, "a"), MemberQuery(place, TOPIC, "b")
    for query in (first, second, first, second):
        query.batch()
    index = home(place)
    place.servers.kill_broker(index)
    place.servers.start_broker(index)
    for queue in BOTH:
        place.send(queue, f"{queue.key}-3")
    assert first.batch() == of(A, first=3, last=4)
    assert second.batch() == of(B, first=3, last=4)
    first.die()
    second.die()


def test_a_query_does_not_become_a_member_beside_consumers_in_silence(
    place: OurPlace, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (group_of(TOPIC), TOPIC)
    with rocketpy.connect(place.servers.namesrv_addr) as client, client.consumer(*names):
        with pytest.raises(GroupConsumedError, match="Stop them, or give the query a group"):
            MemberQuery(place, TOPIC, "a").batch()
        caplog.clear()
        allowed = MemberQuery(place, TOPIC, "a", besideConsumers="true")
        assert allowed.batch() == of(*BOTH)
        assert f"clients consume with group {group_of(TOPIC)}" in caplog.text
    allowed.die()
    monkeypatch.setattr(consumer_watch, "_LOOK_S", 0.0)
    allowed.batch()
    caplog.clear()
    with rocketpy.connect(place.servers.namesrv_addr) as client, client.consumer(*names):
        allowed.batch()
    assert "stop them, or give the query a group of its own" in caplog.text
    assert [each.levelno for each in caplog.records if "beside" in each.message] == [
        logging.WARNING
    ]
