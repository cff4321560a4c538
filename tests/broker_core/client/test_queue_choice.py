from __future__ import annotations

import pytest

from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.queue_choice import BrokerFaults, QueueTurns, wanted
from rocketpy.broker_core.errors import QueueNotFoundError
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.message_queue import MessageQueue

QUEUES = [MessageQueue("t", broker, number) for broker in "ab" for number in range(2)]


def draft(queue_id: int | None = None, sharding_key: str | None = None) -> MessageDraft:
    return MessageDraft(body=b"", queue_id=queue_id, sharding_key=sharding_key)


def test_a_message_that_names_nothing_may_go_anywhere() -> None:
    assert wanted("t", QUEUES, draft()) == QUEUES


def test_a_number_means_the_queues_of_that_number_on_all_brokers() -> None:
    assert wanted("t", QUEUES, draft(queue_id=1)) == [QUEUES[1], QUEUES[3]]


def test_a_number_that_no_queue_has_is_refused() -> None:
    with pytest.raises(QueueNotFoundError):
        wanted("t", QUEUES, draft(queue_id=2))


def test_a_sharding_key_means_one_queue_always_the_same() -> None:
    assert wanted("t", QUEUES, draft(sharding_key="k")) == [QUEUES[queue_of("k", 4)]]


def test_turns_go_round_all_queues() -> None:
    turns = QueueTurns()
    assert {turns.next(QUEUES) for _ in QUEUES} == {*QUEUES}


def test_topics_have_turns_of_their_own() -> None:
    turns, others = QueueTurns(), [each._replace(topic="u") for each in QUEUES]
    found = []
    for _ in QUEUES:
        found.append(turns.next(QUEUES))
        turns.next(others)
    assert {*found} == {*QUEUES}


def test_a_broker_to_avoid_is_passed_over() -> None:
    turns = QueueTurns()
    assert {turns.next(QUEUES, {"a"}).broker for _ in range(8)} == {"b"}


def test_if_all_brokers_are_to_be_avoided_none_is() -> None:
    turns = QueueTurns()
    assert {turns.next(QUEUES, {"a", "b"}) for _ in QUEUES} == {*QUEUES}


def test_a_broker_that_failed_is_avoided_for_ten_seconds() -> None:
    faults = BrokerFaults()
    faults.note_failure("a", 100)
    assert faults.avoided(109.9) == {"a"}
    assert faults.avoided(110) == set()


@pytest.mark.parametrize(
    ("took_s", "avoided_s"), [(0.1, 0), (0.54, 0), (0.6, 2), (2, 5), (4, 6), (6, 10), (16, 30)]
)
def test_the_slower_an_answer_the_longer_its_broker_is_avoided(
    took_s: float, avoided_s: float
) -> None:
    faults = BrokerFaults()
    faults.note_answer("a", took_s, 100)
    assert ("a" in faults.avoided(100)) == bool(avoided_s)
    assert "a" in faults.avoided(100 + avoided_s - 0.01) or not avoided_s
    assert faults.avoided(100 + avoided_s) == set()


def test_a_quick_answer_ends_the_avoiding() -> None:
    faults = BrokerFaults()
    faults.note_failure("a", 100)
    faults.note_answer("a", 0.01, 101)
    assert faults.avoided(101) == set()
