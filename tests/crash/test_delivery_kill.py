"""kill -9 in delivery, at each operation on the disk: nothing is lost, nothing comes twice."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crash import workload
from tests.crash.children import Zygote

import rocketpy
from rocketpy.broker_core.clock import ManualClock

pytestmark = pytest.mark.crash

SIGKILL = -9
LEVELS = (1, 2, 5)
WAITING, TIMED = 24, 9
START_MS = 1_700_000_000_000
LATER_MS = 3_600_000


def fill(root: Path, name: str) -> list[str]:
    """Add messages that are due an hour later; return their bodies."""
    with rocketpy.open(root, config=workload.CONFIG, clock=ManualClock(START_MS)) as store:
        store.create_topic("orders", 2)
        levels = [f"{name} level {LEVELS[n % 3]} {n}" for n in range(WAITING)]
        store.append(
            "orders",
            pa.table({"body": levels, "delay_level": [LEVELS[n % 3] for n in range(WAITING)]}),
        )
        timed = [f"{name} timed {n}" for n in range(TIMED)]
        now = store._store.clock.now_ms()
        for n, body in enumerate(timed):
            store.send("orders", body, deliver_at=now + 1000 + (7 * n % 5) * 1000)
    return levels + timed


def delivered(store: rocketpy.Store) -> list[str]:
    found: list[bytes] = store.read("orders", columns=["body"]).read_all()["body"].to_pylist()
    return [body.decode() for body in found]


def test_a_deliverer_killed_anywhere_loses_and_doubles_nothing(
    folder: Path, zygote: Zygote, is_soak: bool
) -> None:
    """Each round adds messages, kills a deliverer at a later operation, and lets another finish."""
    root, sent, outcomes, kills, code = folder / "store", [], set(), 0, SIGKILL
    for kill_at in range(1, 1000, 1 if is_soak else 5):
        sent += fill(root, f"round {kill_at}")
        now_ms = START_MS + LATER_MS + kill_at * LATER_MS
        code = zygote.start_delivery(root, now_ms=now_ms, kill_at=kill_at).wait()
        assert code in (0, SIGKILL)
        kills += code == SIGKILL
        clock = ManualClock(now_ms + 60_000)  # the lease of the dead one is over
        with rocketpy.open(root, config=workload.CONFIG, clock=clock) as store:
            before = len(delivered(store))
            more = store.deliver_due()
            found = delivered(store)
            assert len(found) == before + more
            assert Counter(found) == Counter(sent)
            outcomes.add(more)
            assert store.deliver_due() == 0
            assert list(store.verify()) == []
        check_order(found)
        if code == 0:
            break
    assert code == 0
    assert kills > 10
    assert len(outcomes) > 1  # it died before, between and behind its commits


def check_order(found: list[str]) -> None:
    """Messages of a level come in their order; the two queues are read one after the other."""
    for level in LEVELS:
        by_round: dict[str, list[int]] = {}
        for body in found:
            name, _, number = body.partition(f" level {level} ")
            if number:
                by_round.setdefault(name, []).append(int(number))
        for order in by_round.values():
            falls = sum(a > b for a, b in itertools.pairwise(order))
            assert falls <= 1, order
