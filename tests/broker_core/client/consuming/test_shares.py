from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.client.consuming.shares import change, client_strategy, share_of
from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("orders", f"broker-{each % 2}", each // 2) for each in range(count)]


@given(
    count=st.integers(min_value=0, max_value=20),
    members=st.sets(st.text("abc@1", min_size=1, max_size=4), min_size=1, max_size=6),
    strategy=st.sampled_from(("averagely", "circle", "consistentHash")),
)
def test_the_shares_of_all_members_are_all_queues_once(
    count: int, members: set[str], strategy: str
) -> None:
    shares = [share_of(each, queues(count), members, client_strategy(strategy)) for each in members]
    assert sum(map(len, shares)) == count
    assert frozenset().union(*shares) == frozenset(queues(count))


def test_who_is_no_member_has_nothing() -> None:
    assert not share_of("c", queues(4), ["a", "b"], client_strategy("averagely"))


def test_a_strategy_that_clients_cannot_count_is_refused() -> None:
    with pytest.raises(RebalanceError, match="averagely"):
        client_strategy("backlog")


def test_a_change_is_what_is_lost_and_what_is_gained_in_order() -> None:
    a, b, c, d = queues(4)
    found = change([b, a], [b, d, c])
    assert (found.lost, found.gained) == ((a,), (c, d) if c < d else (d, c))
    assert change([a], [a]) == ((), ())
