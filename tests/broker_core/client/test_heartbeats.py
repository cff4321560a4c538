from __future__ import annotations

import json

from rocketpy.broker_core.client.heartbeats import (
    AGAIN_S,
    EVERY_S,
    ClientGroups,
    HeartbeatTimes,
    heartbeat,
    joined,
)
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    ConsumerData,
    ProducerData,
    SubscriptionData,
)


def test_a_new_broker_is_due_at_once_and_then_each_thirty_seconds() -> None:
    times = HeartbeatTimes()
    assert times.due(["a"], 5) == ["a"]
    times.note_sent("a", 5)
    assert times.due(["a", "b"], 5) == ["b"]
    assert times.due(["a"], 5 + EVERY_S - 0.1) == []
    assert times.due(["a"], 5 + EVERY_S) == ["a"]


def test_a_broker_that_does_not_answer_is_tried_again_soon() -> None:
    times = HeartbeatTimes()
    times.note_sent("a", 0)
    times.note_failed("a", 3)
    assert times.due(["a"], 3) == []
    assert times.due(["a"], 3 + AGAIN_S) == ["a"]


def test_a_lost_connection_makes_its_broker_due() -> None:
    times = HeartbeatTimes()
    times.note_sent("a", 0)
    times.note_lost("a")
    assert times.due(["a"], 1) == ["a"]


def test_a_broker_without_topics_of_ours_is_forgotten() -> None:
    times = HeartbeatTimes()
    times.note_sent("a", 0)
    assert times.told == ["a"]
    assert times.due([], 1) == []
    assert times.told == []


def test_a_group_of_several_parts_is_told_once() -> None:
    old = ConsumerData(group_name="g")
    new = ConsumerData(group_name="g", subscriptions=(SubscriptionData(topic="t"),))
    sender = ProducerData(group_name="p")
    groups = joined([ClientGroups((sender,), (old,)), ClientGroups((sender,), (new,))])
    assert groups == ClientGroups((sender,), (new,))


def test_the_body_has_what_a_broker_of_4_9_reads() -> None:
    groups = ClientGroups((ProducerData(group_name="p"),), ())
    body = json.loads(heartbeat("10.0.0.1@7#8", groups))
    assert body["clientID"] == "10.0.0.1@7#8"
    assert body["producerDataSet"] == [{"groupName": "p"}]
    assert body["consumerDataSet"] == []
