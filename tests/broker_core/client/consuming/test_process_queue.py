from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.broker_core.client.consuming.messages import QUEUE, message, messages

from rocketpy.broker_core.client.consuming.process_queue import BufferLimits, ProcessQueue
from rocketpy.broker_core.client.consuming.received import ReceivedMessage


def filled(*queue_offsets: int, is_orderly: bool = False) -> ProcessQueue:
    queue = ProcessQueue(QUEUE, 0, is_orderly=is_orderly)
    queue.put(messages(*queue_offsets), max(queue_offsets) + 1)
    return queue


def offsets(taken: list[ReceivedMessage]) -> list[int]:
    return [each.queue_offset for each in taken]


def test_the_position_is_the_smallest_offset_that_is_not_done() -> None:
    queue = filled(0, 1, 2)
    taken = queue.take(3, 0)
    assert queue.position == 0
    queue.done(taken[1:])
    assert queue.position == 0
    queue.done(taken[:1])
    assert queue.position == 3


def test_the_position_passes_what_a_filter_left_out_when_all_is_done() -> None:
    queue = ProcessQueue(QUEUE, 10)
    queue.put([], 15)
    assert queue.position == 15
    queue.put(messages(17), 20)
    assert queue.position == 17
    queue.done(queue.take(1, 0))
    assert queue.position == 20


def test_what_was_pulled_before_is_not_taken_twice() -> None:
    queue = filled(0, 1)
    queue.done(queue.take(1, 0))
    queue.put(messages(0, 1, 2), 3)
    assert offsets(queue.take(9, 0)) == [1, 2]


def test_no_more_room_than_the_limit_of_messages_leaves() -> None:
    queue = ProcessQueue(QUEUE, 0, limits=BufferLimits(messages=3))
    queue.put(messages(0, 1), 2)
    assert queue.room == 1
    queue.put(messages(2), 3)
    assert queue.room == 0
    queue.done(queue.take(1, 0))
    assert queue.room == 1


def test_no_room_while_the_bytes_pass_their_limit() -> None:
    queue = ProcessQueue(QUEUE, 0, limits=BufferLimits(size_bytes=10))
    queue.put([message(0, body=b"x" * 10)], 1)
    assert queue.room == 0
    queue.done(queue.take(1, 0))
    assert queue.room == 1_000
    assert queue.size_bytes == 0


def test_no_room_while_the_first_is_too_far_from_the_last_unless_in_order() -> None:
    for is_orderly, room in ((False, 0), (True, 1_000 - 2)):
        queue = ProcessQueue(QUEUE, 0, is_orderly=is_orderly)
        queue.put(messages(0, 2_000), 2_001)
        assert queue.room == room


def test_limits_of_a_topic_are_divided_among_its_queues() -> None:
    limits = BufferLimits(topic_messages=100, topic_size_bytes=1_000).of_each(3)
    assert (limits.messages, limits.size_bytes) == (33, 333)
    assert BufferLimits(topic_messages=2).of_each(5).messages == 1


def test_what_is_tried_again_comes_after_its_time_and_counts_a_try_more() -> None:
    queue = filled(0, 1)
    queue.again(queue.take(1, 0), 5.0)
    assert offsets(queue.take(9, 4.9)) == [1]
    assert queue.next_due_s() == 5.0
    (again,) = queue.take(9, 5.0)
    assert (again.queue_offset, again.reconsume_times) == (0, 1)


def test_in_order_nothing_is_handed_out_while_something_is() -> None:
    queue = filled(0, 1, is_orderly=True)
    taken = queue.take(1, 0)
    assert not queue.take(1, 0)
    queue.done(taken)
    assert offsets(queue.take(1, 0)) == [1]


def test_in_order_what_failed_comes_again_before_the_others_after_a_pause() -> None:
    queue = filled(0, 1, 2, is_orderly=True)
    queue.again(queue.take(2, 0), 1.0)
    assert not queue.take(3, 0.9)
    assert queue.next_due_s() == 1.0
    taken = queue.take(3, 1.0)
    assert [(each.queue_offset, each.reconsume_times) for each in taken] == [(0, 1), (1, 1), (2, 0)]


def test_a_paused_queue_hands_out_nothing() -> None:
    queue = filled(0)
    queue.is_paused = True
    assert not queue.take(1, 0)
    queue.is_paused = False
    assert queue.take(1, 0)


def test_a_dropped_queue_keeps_its_position_whatever_comes_of_its_messages() -> None:
    queue = filled(0, 1, 2)
    taken = queue.take(2, 0)
    queue.done(taken[:1])
    queue.drop()
    assert (queue.position, queue.out, queue.room) == (1, 1, 0)
    queue.done(taken[1:])
    assert (queue.position, queue.out) == (1, 0)
    assert not queue.take(9, 0)


def test_messages_put_back_come_first_and_count_no_try() -> None:
    queue = filled(0, 1, 2)
    queue.put_back(queue.take(2, 0))
    assert [(each.queue_offset, each.reconsume_times) for each in queue.take(9, 0)] == [
        *((0, 0), (1, 0), (2, 0)),
    ]


def test_messages_are_overdue_from_when_they_were_handed_out() -> None:
    queue = filled(0, 1, 2)
    first = queue.take(1, 10.0)
    second = queue.take(1, 20.0)
    assert queue.overdue(10.0) == []
    assert queue.overdue(20.0) == first
    assert queue.overdue(20.1) == first + second
    queue.done(first)
    assert queue.overdue(99.0) == second
    assert not queue.is_out(first[0])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("put", "take", "done", "again", "back")),
        st.integers(min_value=1, max_value=5),
    ),
    max_size=60,
)


@given(steps=STEPS, is_orderly=st.booleans())
def test_the_position_never_passes_a_message_that_is_not_done(
    steps: list[tuple[str, int]], is_orderly: bool
) -> None:
    queue = ProcessQueue(QUEUE, 0, limits=BufferLimits(messages=8), is_orderly=is_orderly)
    undone: set[int] = set()
    out: list[ReceivedMessage] = []
    position, now_s = 0, 0.0
    for step, count in steps:
        now_s += 1.0
        if step == "put":
            gap = queue.next_offset + count % 3
            new = messages(*range(gap, gap + min(count, queue.room)))
            queue.put(new, gap + len(new))
            undone.update(offsets(new))
        elif step == "take":
            taken = queue.take(count, now_s)
            assert not {*offsets(taken)} & {*offsets(out)}
            assert not (is_orderly and out and taken)
            out += taken
        elif out:
            part = out[-count:] if not is_orderly else out
            out = out[: len(out) - len(part)]
            if step == "done":
                queue.done(part)
                undone.difference_update(offsets(part))
            elif step == "again":
                queue.again(part, now_s + count)
            else:
                queue.put_back(part)
        assert queue.position == min(undone, default=queue.next_offset)
        assert queue.position >= position
        assert len(queue) == len(undone) <= 8
        position = queue.position
    queue.put_back(out)
    left = offsets(queue.take(99, now_s + 99))
    assert sorted(left) == sorted(undone)
    assert not is_orderly or left == sorted(left)
