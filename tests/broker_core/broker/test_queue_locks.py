from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.broker.queue_locks import QueueLocks
from rocketpy.broker_core.message_queue import MessageQueue

Q0, Q1, Q2 = (MessageQueue("orders", "shop", queue_id) for queue_id in range(3))


def test_a_locked_queue_is_refused_to_others_and_given_again_to_its_holder() -> None:
    locks = QueueLocks(60_000)
    assert locks.lock("billing", "a", [Q0, Q1], now_ms=0) == [Q0, Q1]
    assert locks.lock("billing", "b", [Q0, Q2], now_ms=1) == [Q2]
    assert locks.lock("billing", "a", [Q0], now_ms=2) == [Q0]
    assert locks.holder("billing", Q0, now_ms=2) == "a"


def test_groups_lock_the_same_queue_apart() -> None:
    locks = QueueLocks(60_000)
    assert locks.lock("billing", "a", [Q0], now_ms=0) == [Q0]
    assert locks.lock("audit", "b", [Q0], now_ms=0) == [Q0]


def test_only_the_holder_unlocks() -> None:
    locks = QueueLocks(60_000)
    locks.lock("billing", "a", [Q0], now_ms=0)
    locks.unlock("billing", "b", [Q0])
    assert locks.lock("billing", "b", [Q0], now_ms=1) == []
    locks.unlock("billing", "a", [Q0, Q1])
    assert locks.lock("billing", "b", [Q0], now_ms=1) == [Q0]


def test_a_lock_lasts_a_minute_from_when_it_was_asked_for_last() -> None:
    locks = QueueLocks(60_000)
    locks.lock("billing", "a", [Q0], now_ms=0)
    locks.lock("billing", "a", [Q0], now_ms=40_000)
    assert locks.lock("billing", "b", [Q0], now_ms=100_000) == []
    assert locks.lock("billing", "b", [Q0], now_ms=100_001) == [Q0]


def test_expired_locks_and_empty_groups_take_no_room() -> None:
    locks = QueueLocks(10)
    locks.lock("billing", "a", [Q0, Q1], now_ms=0)
    locks.lock("audit", "a", [Q0], now_ms=20)
    locks.forget_expired(now_ms=25)
    assert len(locks) == 1
    locks.unlock("audit", "a", [Q0])
    locks.lock("nobody", "a", [], now_ms=25)
    assert len(locks) == 0
    assert locks._locks == {}


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["lock", "unlock", "forget"]),
        st.sampled_from(["a", "b"]),
        st.sets(st.sampled_from([Q0, Q1, Q2])),
        st.integers(0, 12),  # ms until then
    ),
    max_size=30,
)


@given(_STEPS)
def test_locks_are_what_a_plain_model_says(
    steps: list[tuple[str, str, set[MessageQueue], int]],
) -> None:
    locks, held, now_ms = QueueLocks(10), dict[MessageQueue, tuple[str, int]](), 0

    def is_free(queue: MessageQueue) -> bool:
        return queue not in held or held[queue][1] < now_ms

    for what, client, queues, pause_ms in steps:
        now_ms += pause_ms
        if what == "lock":
            expected = {q for q in queues if is_free(q) or held[q][0] == client}
            assert set(locks.lock("g", client, queues, now_ms=now_ms)) == expected
            held |= dict.fromkeys(expected, (client, now_ms + 10))
        elif what == "unlock":
            locks.unlock("g", client, queues)
            held = {q: by for q, by in held.items() if q not in queues or by[0] != client}
        else:
            locks.forget_expired(now_ms=now_ms)
        for queue in (Q0, Q1, Q2):
            wanted = None if is_free(queue) else held[queue][0]
            assert locks.holder("g", queue, now_ms=now_ms) == wanted
