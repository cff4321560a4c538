"""A micro-batch asks many queues at once: its turns to a broker do not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.connector.cluster.places import OurPlace
from tests.connector.cluster.queries import Query, rows_of

from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.net.blocking import BlockingConnection


@pytest.fixture(scope="module")
def place() -> Iterator[OurPlace]:
    with local_broker() as running:
        found = OurPlace(running)
        with found.cluster:
            yield found


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests left with each write."""
    seen, flush = list[int](), BlockingConnection._flush

    def counted(self: BlockingConnection) -> None:
        if self._unsent:
            seen.append(len(self._unsent))
        flush(self)

    monkeypatch.setattr(BlockingConnection, "_flush", counted)
    return seen


def taken(writes: list[int]) -> list[int]:
    found = writes.copy()
    writes.clear()
    return found


@pytest.mark.parametrize("queues", [2, 8])
def test_turns_of_a_batch(place: OurPlace, writes: list[int], queues: int) -> None:
    made = place.create(f"orders-{queues}", queues)
    query = Query({**place.options, "topic": f"orders-{queues}"})
    for number in range(2):  # routes and connections are known at the second batch
        for queue in made:
            place.send(queue, f"{number}")
        writes.clear()
        end = query.next_end()
        planned = taken(writes)
        parts = query.reader.partitions(query.at, end)
        cut = taken(writes)
        assert len(rows_of(query.reader, parts)) == queues
        read = taken(writes)
        query.at = end
    # The ranges, together with the last message that was read; then the last new one.
    assert planned == [queues, queues]
    assert cut == [queues]
    assert read == [queues]
