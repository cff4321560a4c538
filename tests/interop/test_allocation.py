"""Our allocation strategies and Apache's own classes, asked the same: several hundred cases."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.interop.installation import install
from tests.interop.java_process import java_command

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.consistent_hash import ConsistentHash
from rocketpy.broker_core.rebalance.division import Averagely, ByCircle, ByConfig, ByMachineRoom
from rocketpy.broker_core.rebalance.machine_room import MachineRoomNearby
from rocketpy.broker_core.rebalance.strategy import AllocationStrategy, allocated

STRATEGIES = (
    "averagely", "circle", "config", "machineRoom", "machineRoomNearby", "consistentHash",
)  # fmt: skip
ROOMS = ("eu", "us", "asia")
RANDOM_CASES = 60  # of each strategy

Case = dict[str, Any]


def queues(rng: random.Random, count: int) -> list[list[object]]:
    names = [f"{rng.choice(ROOMS)}@broker-{rng.randrange(4)}" for _ in range(3)]
    topic = rng.choice(["orders", "%RETRY%billing", "a" * 127])
    return sorted([topic, names[number % 3], number // 3] for number in range(count))


def members(rng: random.Random, count: int) -> list[str]:
    return sorted(f"{rng.choice(ROOMS)}@10.0.0.{rng.randrange(1 << 20)}#{n}" for n in range(count))


def case(strategy: str, rng: random.Random, **given: object) -> Case:
    who = members(rng, rng.choice([1, 2, 3, 5, 8, 30]))
    what = queues(rng, rng.choice([1, 2, 4, 7, 16, 33, 100]))
    return {
        "strategy": strategy,
        "members": who,
        "member": rng.choice(who),
        "queues": what,
        "config": rng.sample(what, len(what) // 2),
        "rooms": rng.sample(ROOMS, rng.randrange(1, 3)),
        "inner": rng.choice(["averagely", "circle", "consistentHash"]),
        "places": rng.choice([1, 10, 10, 100]),
    } | given


def edges(strategy: str, rng: random.Random) -> Iterator[Case]:
    yield case(strategy, rng, members=members(rng, 9), member="eu@stranger")
    crowd = members(rng, 40)
    for member in crowd[::8]:
        yield case(strategy, rng, members=crowd, member=member, queues=queues(rng, 5))
    twice = ["eu@a", "eu@b", "us@a", "us@a", "eu@b"]
    for member in ("eu@a", "eu@b", "us@a"):
        yield case(strategy, rng, members=twice, member=member, queues=queues(rng, 23))
        doubled = sorted(queues(rng, 7) * 2)
        yield case(strategy, rng, members=twice[:2], member="eu@a", queues=doubled)
    yield case(strategy, rng, members=["b@1", "a@1"], member="a@1", queues=queues(rng, 9)[::-1])
    yield case(strategy, rng, queues=[])
    yield case(strategy, rng, members=[])
    yield case(strategy, rng, member="")
    no_room = [["orders", name, 0] for name in ("broker-a", "eu@b", "eu@b@c", "@b", "eu@")]
    yield case(strategy, rng, queues=no_room, rooms=["eu", ""])
    yield case(strategy, rng, members=["nowhere", "eu@x"], member="eu@x")


def all_cases() -> list[Case]:
    rng = random.Random(20)
    cases = [case(name, rng) for name in STRATEGIES for _ in range(RANDOM_CASES)]
    return cases + [edge for name in STRATEGIES for edge in edges(name, rng)]


def ours(name: str, one: Case) -> AllocationStrategy:
    simple: dict[str, AllocationStrategy] = {
        "averagely": Averagely(),
        "circle": ByCircle(),
        "config": ByConfig({one["member"]: as_queues(one["config"])}),
        "machineRoom": ByMachineRoom(one["rooms"]),
        "consistentHash": ConsistentHash(one["places"]),
    }
    return simple.get(name) or MachineRoomNearby(simple[one["inner"]])


def as_queues(given: list[list[Any]]) -> list[MessageQueue]:
    return [MessageQueue(*queue) for queue in given]


def our_answer(one: Case) -> object:
    strategy, what = ours(one["strategy"], one), as_queues(one["queues"])
    if one["strategy"] == "config":  # Apache's looks at nothing but its table
        return [list(queue) for queue in strategy.assign(what, [one["member"]])[one["member"]]]
    try:
        return [list(queue) for queue in allocated(strategy, one["member"], what, one["members"])]
    except RebalanceError:
        return "refused"


@pytest.fixture(scope="module")
def apache_answers(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """What Apache's classes answer to all cases, in one JVM."""
    home = tmp_path_factory.mktemp("allocation")
    command = java_command("AllocationTool", class_path=install().class_path, home=home)
    asked = "\n".join(map(json.dumps, all_cases()))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line[:1] in '["']


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_strategy_answers_as_apaches_own_class(name: str, apache_answers: list[object]) -> None:
    cases = all_cases()
    assert len(apache_answers) == len(cases) >= 400
    answered = zip(cases, apache_answers, strict=True)
    mine = [(one, theirs) for one, theirs in answered if one["strategy"] == name]
    assert len(mine) >= RANDOM_CASES
    assert [(our_answer(one), one) for one, _ in mine] == [(theirs, one) for one, theirs in mine]
