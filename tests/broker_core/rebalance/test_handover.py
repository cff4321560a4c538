"""The state machine of a hand-over: a test for each transition, and one for all of them mixed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.errors import MemberNotFoundError, MemberReplacedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.handover import (
    QueueState,
    hand_over,
    join,
    leave,
    queue_state,
    renew,
)
from rocketpy.broker_core.rebalance.membership import Identity, Member, Members
from rocketpy.broker_core.rebalance.strategy import Assignment

QUEUE = MessageQueue("orders", "broker-a", 0)
A, B = Identity("billing", "a", "token-a"), Identity("billing", "b", "token-b")
LEASE_MS = 1000


def member(who: Identity, *, holds: bool = False, until_ms: int = LEASE_MS) -> Member:
    return Member(
        name=who.name,
        token=who.token,
        topics=("orders",),
        joined_ms=0,
        lease_ms=LEASE_MS,
        until_ms=until_ms,
        holds=frozenset({QUEUE} if holds else ()),
    )


def generation(owner: Identity | None, number: int = 1) -> Generation:
    queues: Assignment = {A.name: (), B.name: ()}
    if owner is not None:
        queues[owner.name] = (QUEUE,)
    return Generation(
        number=number,
        strategy="averagely",
        basis="",
        made_ms=0,
        made_by="test",
        reason="",
        queues=queues,
    )


def pair(holder: Identity | None) -> dict[str, Member]:
    return {who.name: member(who, holds=who == holder) for who in (A, B)}


def states(generation_: Generation | None, members: Members) -> list[QueueState]:
    return [queue_state(QUEUE, who.name, generation_, members) for who in (A, B)]


# --- each transition ----------------------------------------------------------------------------


def test_without_a_generation_every_queue_is_foreign_and_nobody_takes_one() -> None:
    members = pair(None)
    assert states(None, members) == [QueueState.FOREIGN, QueueState.FOREIGN]
    assert hand_over(members, A, None) == members


def test_free_becomes_held_at_the_hand_over() -> None:
    target = generation(A)
    assert states(target, pair(None)) == [QueueState.FREE, QueueState.FOREIGN]
    after = hand_over(pair(None), A, target)
    assert states(target, after) == [QueueState.HELD, QueueState.FOREIGN]
    assert after["a"].acknowledged == 1


def test_held_becomes_leaving_when_a_generation_gives_it_to_another_who_waits() -> None:
    assert states(generation(B), pair(A)) == [QueueState.LEAVING, QueueState.WAITING]


def test_the_new_owner_does_not_get_what_the_old_one_still_holds() -> None:
    after = hand_over(pair(A), B, generation(B, 2))
    assert states(generation(B, 2), after) == [QueueState.LEAVING, QueueState.WAITING]
    assert after["b"].acknowledged == 2
    assert after["a"].acknowledged == 0


def test_leaving_becomes_foreign_at_the_hand_over_and_waiting_becomes_free() -> None:
    after = hand_over(pair(A), A, generation(B, 2))
    assert states(generation(B, 2), after) == [QueueState.FOREIGN, QueueState.FREE]
    assert after["a"].acknowledged == 2


def test_leaving_becomes_held_when_a_newer_generation_gives_it_back() -> None:
    after = hand_over(pair(A), A, generation(A, 3))
    assert states(generation(A, 3), after) == [QueueState.HELD, QueueState.FOREIGN]


def test_waiting_becomes_free_when_the_holder_leaves() -> None:
    after = leave(pair(A), A)
    assert states(generation(B), after) == [QueueState.FOREIGN, QueueState.FREE]


def test_waiting_becomes_free_when_the_holder_is_dead() -> None:
    after = {"b": pair(A)["b"]}
    assert states(generation(B), after) == [QueueState.FOREIGN, QueueState.FREE]


def test_a_lease_begins_again_at_a_renewal() -> None:
    assert renew(pair(A), A, 900)["a"].until_ms == 900 + LEASE_MS


def test_who_comes_again_under_its_name_goes_on_with_what_it_held() -> None:
    before = {"a": replace(member(A, holds=True), acknowledged=7)}
    again = Identity("billing", "a", "another-token")
    after = join(before, replace(member(again), joined_ms=50))
    assert after["a"] == replace(before["a"], token="another-token")


def test_who_was_replaced_is_told_so_at_every_step() -> None:
    members = join(pair(A), member(Identity("billing", "a", "another-token")))
    with pytest.raises(MemberReplacedError, match="'a' of consumer group 'billing' was joined"):
        renew(members, A, 0)
    with pytest.raises(MemberReplacedError):
        hand_over(members, A, generation(A))
    assert leave(members, A) == members


def test_who_was_buried_is_told_so_and_holds_nothing_when_it_joins_again() -> None:
    members = {"b": pair(A)["b"]}
    with pytest.raises(MemberNotFoundError, match="has no member 'a'"):
        renew(members, A, LEASE_MS)
    assert join(members, member(A))["a"].holds == frozenset()


# --- all of them mixed --------------------------------------------------------------------------

QUEUES = [QUEUE._replace(queue_id=number) for number in range(4)]
CROWD = [Identity("billing", name, name) for name in "abc"]
OWNERS = st.lists(st.sampled_from("abc"), min_size=4, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), OWNERS),
        st.tuples(st.sampled_from(["join", "leave", "hand_over", "die"]), st.sampled_from(CROWD)),
    ),
    max_size=40,
)


@given(STEPS)
def test_in_any_order_no_queue_has_two_holders_and_none_is_taken_from_who_lives(
    steps: list[tuple[str, object]],
) -> None:
    members: dict[str, Member] = {}
    target = generation(None)
    for step, what in steps:
        before = members
        if isinstance(what, list):
            shares = {
                name: tuple(q for q, o in zip(QUEUES, what, strict=True) if o == name)
                for name in "abc"
            }
            target = replace(target, number=target.number + 1, queues=shares)
        elif isinstance(what, Identity):
            if step == "join":
                members = join(members, member(what))
            elif step == "leave":
                members = leave(members, what)
            elif step == "die":
                members = {name: each for name, each in members.items() if name != what.name}
            elif what.name in members:
                members = hand_over(members, what, target)
            for name in members.keys() - {what.name}:
                assert members[name] == before[name]
        held = [queue for each in members.values() for queue in each.holds]
        assert len(held) == len(set(held))
    for who in CROWD * 2:  # give, then take
        if who.name in members:
            members = hand_over(members, who, target)
    for name, each in members.items():
        assert each.holds == frozenset(target.of(name))
