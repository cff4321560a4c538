"""Retries and dead letters over both brokers: what one sent back, the other goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.interop import workload
from tests.interop.apache import ApacheBroker
from tests.interop.our_side import in_order, read_all

import rocketpy
from rocketpy.broker_core.embedded import Receipt

SCHEDULE, RETRY, DEAD = "SCHEDULE_TOPIC_XXXX", "%RETRY%billing", "%DLQ%billing"


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to three messages of ours while Apache's broker had the store."""

    path: Path
    sent: list[Receipt]
    ours_in_dead_letters: list[dict[str, Any]]  # before Apache's broker
    given: list[dict[str, Any]]  # to the Java consumer
    dead: list[dict[str, Any]]  # as Apache's broker serves them
    dead_of_strict: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    path = tmp_path_factory.mktemp("retry") / "store"
    with rocketpy.open(path, config=workload.CONFIG) as store:
        store.create_topic("orders", 1)
        store.create_group("billing", retry_max_times=2)
        store.create_group("strict", retry_max_times=0)
        sent = [store.send("orders", f"m{n}", tags="x", keys=[f"k{n}"]) for n in range(3)]
        store.send_back(sent[0], group="billing", delay_level=1, cause="no stock")
        store.send_back(sent[1], group="billing", delay_level=-1, cause="no price")
        ours = read_all(store, [DEAD])
    with ApacheBroker(path, settings=workload.SETTINGS) as apache:
        given = apache.tool.consume("billing", "orders", retried=2, fails=2)
        for group in ("strict", "billing"):
            apache.tool.send_back(group, "orders", sent[2].physical_offset, level=0)
        dead = in_order(apache.tool.pull([DEAD]))
        strict = in_order(apache.tool.pull(["%DLQ%strict"]))
    return Story(path, sent, ours, given, dead, strict)


def again(story: Story) -> list[dict[str, Any]]:
    return [message for message in story.given if message["reconsumeTimes"]]


def test_apache_gives_our_retry_to_a_consumer_of_the_group(story: Story) -> None:
    first = again(story)[0]
    assert (first["body"], first["reconsumeTimes"]) == (b"m0", 1)
    assert first["topic"] == "orders"  # the client puts the first topic back
    assert first["properties"]["ORIGIN_MESSAGE_ID"] == story.sent[0].msg_id
    assert first["properties"]["ROCKETPY_CAUSE"] == "no stock"


def test_apache_goes_on_with_the_tries_that_we_began(story: Story) -> None:
    second = again(story)[1]
    assert (second["body"], second["reconsumeTimes"]) == (b"m0", 2)
    assert second["properties"]["ORIGIN_MESSAGE_ID"] == story.sent[0].msg_id
    assert second["properties"]["RETRY_TOPIC"] == "orders"


def test_apache_serves_our_dead_letters_as_they_are(story: Story) -> None:
    assert [message["body"] for message in story.dead] == [b"m1"]
    assert story.dead == story.ours_in_dead_letters


def test_apache_honours_how_often_our_group_tries(story: Story) -> None:
    (dead,) = story.dead_of_strict  # after no try at all; `billing`, which tries twice, waits
    assert (dead["body"], dead["reconsumeTimes"]) == (b"m2", 1)
    with rocketpy.open(story.path, read_only=True, config=workload.CONFIG) as store:
        waiting = read_all(store, [SCHEDULE])[-1]
    assert (waiting["body"], waiting["properties"]["DELAY"]) == (b"m2", "3")


def test_we_and_apache_make_the_same_of_a_message(story: Story) -> None:
    with rocketpy.open(story.path, config=workload.CONFIG) as store:
        store.create_group("other", retry_max_times=0)
        store.send_back(story.sent[2], group="other")
        (ours,) = read_all(store, ["%DLQ%other"])
    (apaches,) = story.dead_of_strict
    names = ("body", "reconsumeTimes", "properties", "flag", "sysFlag", "bornTimestamp", "bornHost")
    assert {name: ours[name] for name in names} == {name: apaches[name] for name in names}


def test_we_go_on_with_a_message_that_apache_retried(story: Story) -> None:
    with rocketpy.open(story.path, config=workload.CONFIG) as store:
        retries = read_all(store, [RETRY])
        assert [message["reconsumeTimes"] for message in retries] == [1, 2]
        back = store.send_back((RETRY, 0, 1), group="billing", cause="still none")
        dead = read_all(store, [DEAD])[-1]
    assert (back.topic, back.reconsume_times) == (DEAD, 3)
    assert dead["properties"]["ORIGIN_MESSAGE_ID"] == story.sent[0].msg_id
    assert dead["properties"]["RETRY_TOPIC"] == "orders"
    assert (dead["body"], dead["reconsumeTimes"]) == (b"m0", 3)
