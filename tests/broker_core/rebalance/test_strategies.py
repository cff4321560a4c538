"""Apache's strategies by example; tests/interop/test_allocation.py asks Apache itself."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.consistent_hash import ConsistentHash
from rocketpy.broker_core.rebalance.division import Averagely, ByCircle, ByConfig, ByMachineRoom
from rocketpy.broker_core.rebalance.machine_room import MachineRoomNearby
from rocketpy.broker_core.rebalance.strategy import AllocationStrategy, Assignment, allocated

MEMBERS = ["a", "b", "c"]


def queues(count: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("orders", broker, number) for number in range(count)]


def numbers(assignment: Assignment) -> dict[str, list[int]]:
    return {name: [queue.queue_id for queue in share] for name, share in assignment.items()}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Averagely(), {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7]}),
        (ByCircle(), {"a": [0, 3, 6], "b": [1, 4, 7], "c": [2, 5]}),
        (ByConfig({"b": queues(2), "z": queues(8)}), {"a": [], "b": [0, 1], "c": []}),
        (ConsistentHash(), {"a": [0, 2, 3, 5], "b": [6], "c": [1, 4, 7]}),
    ],
)
def test_eight_queues_among_three_members(
    strategy: AllocationStrategy, expected: dict[str, list[int]]
) -> None:
    assert numbers(strategy.assign(queues(8), MEMBERS)) == expected


@pytest.mark.parametrize("strategy", [Averagely(), ByCircle()])
def test_members_beyond_the_queues_get_nothing(strategy: AllocationStrategy) -> None:
    assert numbers(strategy.assign(queues(2), MEMBERS)) == {"a": [0], "b": [1], "c": []}


def test_what_a_machine_room_leaves_over_goes_to_the_first_members() -> None:
    both = queues(5, "eu@a") + queues(5, "us@a")
    assert numbers(ByMachineRoom({"eu"}).assign(both, MEMBERS)) == {
        "a": [0, 3],
        "b": [1, 4],
        "c": [2],
    }


def test_a_room_without_members_is_shared_by_all() -> None:
    both = queues(4, "eu@a") + queues(4, "us@a")
    assigned = MachineRoomNearby().assign(both, ["eu@1", "eu@2"])
    assert assigned["eu@1"] == (*both[:2], *both[4:6])
    nearby = MachineRoomNearby().assign(both, ["eu@1", "us@1"])
    assert nearby == {"eu@1": tuple(both[:4]), "us@1": tuple(both[4:])}


def test_who_joins_a_ring_takes_queues_and_moves_no_others() -> None:
    before = ConsistentHash(100).assign(queues(200), MEMBERS)
    after = ConsistentHash(100).assign(queues(200), [*MEMBERS, "d"])
    assert after["d"]
    for name in MEMBERS:
        assert {*after[name]} <= {*before[name]}


def test_a_stranger_gets_nothing_and_an_empty_question_is_refused() -> None:
    assert allocated(Averagely(), "z", queues(8), MEMBERS) == ()
    for member, what, who in (("", queues(1), MEMBERS), ("a", [], MEMBERS), ("a", queues(1), [])):
        with pytest.raises(RebalanceError, match="is empty; give at least one"):
            allocated(Averagely(), member, what, who)


@pytest.mark.parametrize("strategy", [Averagely(), ByCircle(), ByMachineRoom({"eu"})])
def test_without_members_nothing_is_divided(strategy: AllocationStrategy) -> None:
    assert strategy.assign(queues(3), []) == {}
