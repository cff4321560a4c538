"""What is gone before it was read is found when a batch is planned."""

from __future__ import annotations

import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connector.queues import q

from rocketpy.connector.data_loss import DataLossError, Loss, readable, report
from rocketpy.connector.offsets import MessageQueue

HELD = (5, 20)

positions = st.dictionaries(st.integers(0, 3).map(q), st.integers(0, 30))
helds = st.dictionaries(
    st.integers(0, 3).map(q),
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair))),
)


@pytest.mark.parametrize(
    ("start", "end", "read", "lost"),
    [
        pytest.param(8, 12, (8, 12), None, id="all there"),
        pytest.param(5, 20, (5, 20), None, id="exactly what is held"),
        pytest.param(8, 8, None, None, id="nothing asked for"),
        pytest.param(2, 12, (5, 12), (2, 5), id="the oldest deleted"),
        pytest.param(2, 4, (5, 5), (2, 4), id="all of them deleted"),
        pytest.param(8, 25, (8, 20), (20, 25), id="the end lost"),
        pytest.param(30, 12, (5, 12), (12, 30), id="made anew"),
        pytest.param(None, 12, (5, 12), (0, 5), id="new, but its first are deleted"),
        pytest.param(8, None, None, None, id="not in the end"),
    ],
)
def test_what_can_be_read_and_what_is_lost(
    start: int | None,
    end: int | None,
    read: tuple[int, int] | None,
    lost: tuple[int, int] | None,
) -> None:
    queue = q(0)
    ranges, losses = readable(
        {} if start is None else {queue: start}, {} if end is None else {queue: end}, {queue: HELD}
    )
    assert [(part.start, part.end) for part in ranges.values()] == ([read] if read else [])
    assert [(loss.start, loss.end) for loss in losses] == ([lost] if lost else [])


@given(positions, positions, helds)
def test_only_what_is_held_is_read(
    start: dict[MessageQueue, int],
    end: dict[MessageQueue, int],
    held: dict[MessageQueue, tuple[int, int]],
) -> None:
    ranges, losses = readable(start, end, held)
    for queue, part in ranges.items():
        low, high = held[queue]
        assert not len(part) or low <= part.start <= part.end <= high
        asked = end[queue] - start.get(queue, 0)
        if asked > len(part):
            assert queue in {loss.queue for loss in losses}


def test_a_queue_that_is_gone_is_lost() -> None:
    assert readable({q(0): 3}, {q(0): 9}, {}) == (
        {},
        [Loss(q(0), 3, 9, "there is no such queue any more")],
    )


def test_a_new_queue_is_read_from_its_beginning() -> None:
    ranges, losses = readable({}, {q(1): 4}, {q(1): (0, 9)})
    assert ((ranges[q(1)].start, ranges[q(1)].end), losses) == ((0, 4), [])


def test_a_loss_stops_the_query_and_says_exactly_which_and_how_to_go_on() -> None:
    losses = [Loss(q(0), 3, 9, "the oldest held is 9"), Loss(q(1), 4, None, "there is no such")]
    with pytest.raises(DataLossError) as raised:
        report(losses, fail=True)
    for words in ("t/b:0 from offset 3 up to 9", "t/b:1 from offset 4 on", "'failOnDataLoss'"):
        assert words in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_loss_that_may_be_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        report([Loss(q(0), 3, 9, "the oldest held is 9")], fail=False)
        report([], fail=True)
    assert [record.getMessage()[:60] for record in caplog.records] == [
        "messages are gone before they were read: t/b:0 from offset 3"
    ]
