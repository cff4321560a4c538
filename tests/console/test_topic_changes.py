"""Topics made, changed and deleted by who may; what was not done is told of each broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console.shop import NASTY, until
from tests.console.visiting import Visitor, audited, hidden_fields, visiting

import rocketpy
from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.console.changes.cluster import ClusterChanger
from rocketpy.console.changes.folder import FolderChanger
from rocketpy.console.cluster import ClusterReader
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace

Visitors = dict[str, Visitor]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with rocketpy.open(tmp_path / "store") as made:
        made.create_topic("orders", 2)
        made.send("orders", "1 euro")
    return tmp_path / "store"


@pytest.fixture
def folder(store: Path, tmp_path: Path) -> Iterator[Visitors]:
    with visiting(tmp_path, WatchedPlace(FolderReader(store), FolderChanger(store))) as visitors:
        yield visitors


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2, topics={"orders": 2}) as running:
        yield running


@pytest.fixture
def cluster(servers: LocalBroker, tmp_path: Path) -> Iterator[Visitors]:
    access = ClusterAccess(ClusterAddress.of_name_servers(servers.namesrv_addr))
    place = WatchedPlace(ClusterReader(access), ClusterChanger(access))
    with visiting(tmp_path, place) as visitors:
        yield visitors


def queues(store: Path) -> dict[str, tuple[int, int, int]]:
    with rocketpy.open(store, read_only=True) as opened:
        return {
            name: (each.write_queues, each.read_queues, each.perm)
            for name, each in opened.topics().items()
        }


def test_a_topic_of_a_folder_is_made_changed_and_deleted(
    folder: Visitors, store: Path, tmp_path: Path
) -> None:
    anna = folder["anna"]
    got = anna.submit("/0/change/topic-create", {"name": "paid", "queues": "3", "broker": "b"})
    assert (got.status, "there is no such broker" in got.text) == (400, True)
    done = anna.submit(
        "/0/change/topic-create", {"name": "paid", "queues": "3", "broker": "rocketpy"}
    )
    assert "Done." in anna.follow(done).text
    assert queues(store)["paid"] == (3, 3, 6)
    assert ">paid</a>" in anna.get("/0/topics").text  # at once
    change = {"write_queues": "5", "read_queues": "6", "perm": "4"}
    assert "Done." in anna.follow(anna.submit("/0/change/topic-change?name=paid", change)).text
    assert queues(store)["paid"] == (5, 6, 4)
    for typed in ("", "Paid", "paid "):
        got = anna.submit("/0/change/topic-delete?name=paid", {"typed": typed})
        assert (got.status, "type the name of the topic" in got.text) == (400, True)
    got = anna.submit("/0/change/topic-delete?name=paid", {"typed": "paid"})
    assert "Done." in anna.follow(got).text
    assert "paid" not in queues(store)
    begun = [each for each in audited(tmp_path) if each.get("phase") == "begun"]
    ended = {each["id"]: each for each in audited(tmp_path) if "result" in each or "error" in each}
    assert [(each["what"], each["user"]) for each in begun] == [
        *[("topic-create", "anna")] * 2,
        ("topic-change", "anna"),
        *[("topic-delete", "anna")] * 4,
    ]
    assert ended.keys() == {each["id"] for each in begun}
    assert ended[begun[1]["id"]]["result"] == [
        {"where": "rocketpy", "what": "made", "is_done": True}
    ]
    assert begun[2]["parameters"]["write_queues"] == "5"
    assert begun[0]["place"] == str(store)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "it is missing"),
        ("a b", "use letters"),
        (NASTY, "use letters"),
        ("../../etc", "use letters"),
        ("x" * 300, "are allowed"),
        ("SCHEDULE_TOPIC_XXXX", "RocketMQ"),
    ],
)
def test_a_name_that_cannot_be_is_told_in_the_form(
    name: str, says: str, folder: Visitors, store: Path
) -> None:
    before = queues(store)
    got = folder["anna"].submit(
        "/0/change/topic-create", {"name": name, "queues": "3", "broker": "rocketpy"}
    )
    assert (got.status, says in got.text) == (400, True)
    assert "<img src=x" not in got.text
    assert queues(store) == before


def test_a_topic_that_is_there_stays_as_it_is(folder: Visitors, store: Path) -> None:
    got = folder["anna"].submit(
        "/0/change/topic-create", {"name": "orders", "queues": "9", "broker": "rocketpy"}
    )
    assert "it has this topic already" in folder["anna"].follow(got).text
    assert queues(store)["orders"] == (2, 2, 6)


def test_a_change_of_what_is_not_any_more_as_it_was_shown_does_nothing(
    folder: Visitors, store: Path
) -> None:
    anna, path = folder["anna"], "/0/change/topic-change?name=orders"
    hidden = hidden_fields(anna.get(path).text)
    with rocketpy.open(store) as opened:
        opened.update_topic("orders", write_queues=4, read_queues=4)
    fields = {**hidden, "write_queues": "1", "read_queues": "1", "perm": "6"}
    got = anna.post(path.partition("?")[0], fields)
    assert got.status == 409
    assert "was changed since this page was shown; nothing was changed" in got.text
    assert queues(store)["orders"] == (4, 4, 6)


def test_on_a_cluster_a_topic_is_made_on_the_brokers_that_were_chosen(
    cluster: Visitors, servers: LocalBroker
) -> None:
    anna = cluster["anna"]
    form = anna.get("/0/change/topic-create").text
    assert 'value="broker-a" checked' in form
    assert 'value="broker-b" checked' in form
    fields = {"name": "one", "queues": "3", "broker": ["broker-b"]}
    assert "Done." in anna.follow(anna.submit("/0/change/topic-create", fields)).text
    with Cluster(servers.namesrv_addr) as asking:
        assert {*ClusterTopics(asking).settings("one")} == {"broker-b"}
        fields = {"name": "one", "queues": "3", "broker": ["broker-a", "broker-b"]}
        shown = anna.follow(anna.submit("/0/change/topic-create", fields)).text
        assert "1 of 2 could not be done" in shown
        assert {*ClusterTopics(asking).settings("one")} == {"broker-a", "broker-b"}
        change = {"write_queues": "5", "read_queues": "6", "perm": "6"}
        assert "Done." in anna.follow(anna.submit("/0/change/topic-change?name=one", change)).text
        shapes = {each.write_queues for each in ClusterTopics(asking).settings("one").values()}
        assert shapes == {5}
        got = anna.submit("/0/change/topic-delete?name=one", {"typed": "one"})
        assert "Done." in anna.follow(got).text
        until(lambda: "one" not in asking.topics())


def test_what_one_broker_refuses_is_told_and_the_others_do_it(
    cluster: Visitors, servers: LocalBroker, tmp_path: Path
) -> None:
    anna = cluster["anna"]
    hidden = hidden_fields(anna.get("/0/change/topic-change?name=orders").text)
    servers.brokers[0].faults.refuse(["UPDATE_AND_CREATE_TOPIC"])
    change = {**hidden, "write_queues": "3", "read_queues": "3", "perm": "6"}
    shown = anna.follow(anna.post("/0/change/topic-change", change)).text
    assert "1 of 2 could not be done" in shown
    a, b = (audited(tmp_path)[-1]["result"][number] for number in range(2))
    assert (a["where"], a["is_done"], b["where"], b["is_done"]) == (
        *("broker-a", False),
        *("broker-b", True),
    )
    assert a["what"]
    with Cluster(servers.namesrv_addr) as asking:
        found = ClusterTopics(asking).settings("orders")
        assert {name: each.write_queues for name, each in found.items()} == {
            "broker-a": 2,
            "broker-b": 3,
        }
        servers.brokers[1].faults.refuse(["DELETE_TOPIC_IN_BROKER"])
        got = anna.submit("/0/change/topic-delete?name=orders", {"typed": "orders"})
        assert "1 of 2 could not be done" in anna.follow(got).text
        assert "orders" in asking.topics()  # its route is kept for the broker that has it
