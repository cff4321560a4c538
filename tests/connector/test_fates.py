"""What became of the queues in which a query stands: told by what a look found, and by anchors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.connector.queues import q

from rocketpy.connector.fates import Fates, fates_of, is_anew
from rocketpy.connector.offsets import MessageQueue, SourceOffset
from rocketpy.connector.topics import Look, Unseen

BOUNDS = tuple[int, int]


def fates(
    position: int,
    held: BOUNDS | None,
    *,
    anchor: int | None = 300,
    places: Sequence[int | None] = (100, 200, 300, 400),
    unreachable: str = "",
    is_asked: bool = True,
) -> Fates:
    """Return what became of a queue whose entries point at these places."""

    def physical_offset(_: MessageQueue, offset: int) -> int | None:
        return places[offset] if offset < len(places) else None

    at = SourceOffset({q(0): position}, anchors={} if anchor is None else {q(0): anchor})
    found = Look(
        {} if held is None else {q(0): held}, {Unseen("t"): unreachable} if unreachable else {}
    )
    return fates_of(at, found, is_asked=lambda _: is_asked, physical_offset=physical_offset)


def kind(of: Fates) -> str:
    (found,) = [name for name in Fates.__dataclass_fields__ if q(0) in getattr(of, name)]
    return found


@pytest.mark.parametrize(
    ("position", "held", "more", "expected"),
    [
        pytest.param(3, (0, 4), {}, "read_on", id="the same message is before it"),
        pytest.param(3, (0, 4), {"anchor": 250}, "anew", id="another message is before it"),
        pytest.param(3, (0, 4), {"anchor": None}, "read_on", id="nothing to compare with"),
        pytest.param(5, (0, 4), {}, "anew", id="the queue is shorter"),
        pytest.param(5, (0, 4), {"anchor": None}, "anew", id="shorter, without an anchor"),
        pytest.param(3, (0, 0), {"places": ()}, "emptied", id="no message at all"),
        pytest.param(3, (0, 0), {"anchor": None}, "anew", id="no message, and no anchor"),
        pytest.param(3, None, {}, "gone", id="no such queue"),
        pytest.param(3, None, {"unreachable": "EIO"}, "unseen", id="cannot be reached"),
        pytest.param(3, None, {"is_asked": False}, "unasked", id="not named any more"),
        pytest.param(0, (0, 4), {"anchor": None}, "read_on", id="nothing read yet"),
        pytest.param(3, (3, 4), {"anchor": -1, "places": [None] * 4}, "read_on", id="none before"),
        pytest.param(3, (0, 4), {"anchor": -1}, "anew", id="none was before it, now there is"),
    ],
)
def test_what_became_of_a_queue(
    position: int, held: BOUNDS | None, more: dict[str, object], expected: str
) -> None:
    assert kind(fates(position, held, **more)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([None, None, None, 400], False, id="what follows lies behind it"),
        pytest.param([None, None, None, 50], True, id="what follows lies before it"),
        pytest.param([None, None, None, 300], True, id="another message lies in its place"),
        pytest.param([100, 200, None, 400], False, id="repair found it lost"),
    ],
)
def test_where_the_message_before_is_gone_the_next_one_tells(
    places: list[int | None], expected: bool
) -> None:
    low = places.index(next(place for place in places if place is not None))
    found = is_anew(q(0), 3, 300, {q(0): (low, 4)}, lambda _, offset: places[offset])
    assert found is expected


def test_what_is_lost_of_a_queue_that_was_made_anew_is_told() -> None:
    lost = fates(3, (0, 4), anchor=250).anew[q(0)]
    assert str(lost) == (
        "t/b:0 from offset 3 on (it was made anew: another message stands before that offset)"
    )
    shorter = fates(5, (0, 4)).anew[q(0)]
    assert str(shorter).startswith("t/b:0 from offset 4 up to 5 (the queue ends at 4: it was made")
