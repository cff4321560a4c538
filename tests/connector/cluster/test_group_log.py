"""The records of a group on our brokers: races, writers that were paused, brokers that stop."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.rebalance.membership import Member
from rocketpy.broker_core.rebalance.record_log import topic_of
from rocketpy.broker_core.rebalance.records import GroupRecord
from rocketpy.connector.cluster.group_log import GroupLog

CHANGES = 10


@pytest.fixture(scope="module")
def running() -> Iterator[LocalBroker]:
    with local_broker(brokers=2) as servers:
        yield servers


@pytest.fixture
def servers(running: LocalBroker) -> LocalBroker:
    for index, broker in enumerate(running.brokers):
        if not broker.is_running:
            running.start_broker(index)
    running.reset()
    return running


@pytest.fixture
def cluster(servers: LocalBroker) -> Iterator[Cluster]:
    with Cluster(servers.namesrv_addr) as found:
        yield found


def counted(record: GroupRecord, name: str) -> GroupRecord:
    """Return a record in which a member has counted on by one."""
    new = Member(name=name, token="t", topics=(), joined_ms=0, lease_ms=1, until_ms=0)
    member = record.members.get(name, new)
    grown = replace(member, until_ms=member.until_ms + 1)
    return record._replace(members={**record.members, name: grown})


def counts(record: GroupRecord) -> dict[str, int]:
    return {name: member.until_ms for name, member in record.members.items()}


def count_on(namesrv_addr: str, name: str) -> None:
    with Cluster(namesrv_addr) as cluster:
        log = GroupLog(cluster, "billing")
        for _ in range(CHANGES):
            while not log.append(counted(log.read(), name)):
                pass


def test_no_change_of_threads_and_processes_at_once_is_lost(
    servers: LocalBroker, cluster: Cluster
) -> None:
    spawning = multiprocessing.get_context("spawn")
    workers: list[threading.Thread | multiprocessing.process.BaseProcess] = [
        *(threading.Thread(target=count_on, args=(servers.namesrv_addr, name)) for name in "abc"),
        *(spawning.Process(target=count_on, args=(servers.namesrv_addr, name)) for name in "d"),
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    log = GroupLog(cluster, "billing")
    assert counts(log.read()) == dict.fromkeys("abcd", CHANGES)
    assert cluster.route(topic_of("billing"), fresh=True).broker_names == ["broker-a", "broker-b"]


def test_a_writer_that_was_paused_between_look_and_write_changes_nothing(cluster: Cluster) -> None:
    paused, other = GroupLog(cluster, "billing"), GroupLog(cluster, "billing")
    assert paused.append(counted(paused.read(), "a"))
    late = counted(paused.read(), "a")
    assert other.append(counted(other.read(), "b"))
    assert not paused.append(late)
    assert counts(paused.newest) == counts(other.read()) == {"a": 1, "b": 1}
    assert paused.append(counted(paused.newest, "a"))
    assert counts(GroupLog(cluster, "billing").read()) == {"a": 2, "b": 1}


def test_a_record_whose_answers_are_lost_counts_once(servers: LocalBroker) -> None:
    with Cluster(servers.namesrv_addr, timeout_s=0.3) as cluster:
        log, other = GroupLog(cluster, "billing"), GroupLog(cluster, "billing")
        assert log.append(counted(log.read(), "a"))
        for broker in servers.brokers:
            broker.faults.lose_answer("SEND_MESSAGE_V2", times=3)
        with pytest.raises(ServerUnreachableError):
            log.append(counted(log.read(), "a"))
        assert counts(log.read()) == counts(other.read()) == {"a": 2}
        for broker in servers.brokers:
            broker.faults.clear()
            broker.faults.lose_answer("SEND_MESSAGE_V2", times=1)
        assert log.append(counted(log.read(), "a"))  # sent twice
        assert counts(other.read()) == {"a": 3}


def test_records_outlive_a_broker_and_while_it_is_away_nobody_makes_others(
    servers: LocalBroker, cluster: Cluster
) -> None:
    log = GroupLog(cluster, "billing")
    assert log.append(counted(log.read(), "a"))
    (home,) = {queue.broker for queue in cluster.route(topic_of("billing")).writable()}
    index = [broker.name for broker in servers.brokers].index(home)
    servers.stop_broker(index)
    with Cluster(servers.namesrv_addr) as fresh:
        for another in (log, GroupLog(fresh, "billing")):
            with pytest.raises(NoBrokerError, match=r"knows broker-|'billing' is away"):
                another.read()
            with pytest.raises(NoBrokerError, match="'billing' is away"):
                another.append(counted(log.newest, "b"))
        servers.start_broker(index)
        assert counts(log.read()) == {"a": 1}
        assert log.append(counted(log.newest, "a"))
        assert counts(GroupLog(fresh, "billing").read()) == {"a": 2}


def test_a_topic_with_two_homes_is_refused(cluster: Cluster) -> None:
    log = GroupLog(cluster, "billing")
    assert log.append(counted(log.read(), "a"))
    ClusterTopics(cluster).update(topic_of("billing"), perm=6)
    with pytest.raises(RebalanceError, match=r"on broker-a and broker-b: stop its queries, then"):
        GroupLog(cluster, "billing").read()


def test_the_state_is_found_behind_many_records_that_do_not_count(cluster: Cluster) -> None:
    log = GroupLog(cluster, "billing")
    assert log.append(counted(log.read(), "a"))
    late = GroupLog(cluster, "billing")
    late.read()
    assert log.append(counted(log.newest, "a"))
    strangers = [MessageDraft(body=b"no record", queue_id=0) for _ in range(40)]
    Producer(cluster).send_many(topic_of("billing"), strangers)
    assert not late.append(counted(late.newest, "b"))
    assert counts(GroupLog(cluster, "billing").read()) == {"a": 2}


def test_a_topic_that_was_deleted_begins_anew(cluster: Cluster) -> None:
    log = GroupLog(cluster, "billing")
    for _ in range(3):
        assert log.append(counted(log.read(), "a"))
    ClusterTopics(cluster).delete(topic_of("billing"))
    other = GroupLog(cluster, "billing")
    assert other.append(counted(other.read(), "b"))
    log.read()
    while counts(log.newest) != {"b": 1}:
        log.read()
    assert log.append(counted(log.newest, "a"))
    assert counts(other.read()) == {"a": 1, "b": 1}
