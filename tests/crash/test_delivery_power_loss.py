"""Power loss in delivery: what still waits is delivered once, what is sent afterwards as well."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.crash import workload
from tests.crash.faulty_disk import Note, Operation, PowerLoss, RecordingDisk, Style

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.store import MessageStore

pytestmark = pytest.mark.crash

START_MS = 1_700_000_000_000
LONG = "x" * 1500  # so that what waits and what is delivered are in different files of the log


def open_store(root: Path, clock: ManualClock, disk: Disk | None = None) -> rocketpy.Store:
    return rocketpy.Store(MessageStore(root, workload.CONFIG, clock=clock, disk=disk))


def send(store: rocketpy.Store, name: str) -> None:
    now = store._store.clock.now_ms()
    for number in range(4):
        store.send("orders", f"{name} {number} {LONG}", delay_level=1 + number % 2)
    store.send("orders", f"{name} timed {LONG}", deliver_at=now + 2500)


def record(root: Path) -> list[Operation]:
    """Return what sending and delivering, twice, do to the disk; sends are not flushed."""
    disk, clock = RecordingDisk(root), ManualClock(START_MS)
    with open_store(root, clock, disk) as store:
        store.create_topic("orders", 1)
        disk.note("begins")
        for turn in range(2):
            send(store, f"turn {turn}")
            clock.advance(10_000)
            assert store.deliver_due() == 5
    return disk.operations


def bodies(store: rocketpy.Store, topic: str) -> list[str]:
    if topic not in store.topics():
        return []
    found: list[bytes] = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
    return [body.decode() for body in found]


def test_nothing_that_was_found_again_is_lost_or_doubled(folder: Path, is_soak: bool) -> None:
    operations, rng = record(folder / "live"), random.Random(9)
    loss, outcomes, has_begun = PowerLoss(), set(), False
    for number, operation in enumerate(operations):
        loss.apply(operation)
        has_begun |= isinstance(operation, Note)
        if not has_begun or (not is_soak and rng.random() > 0.25):
            continue
        style = rng.choice([Style.LOST, Style.KEPT, Style.SECTORS, Style.TORN])
        print(f"power loss after operation {number}, {style.value}")
        found, clock = folder / "found", ManualClock(START_MS + 3_600_000)
        loss.found(style, rng).write_to(found)
        with open_store(found, clock) as store:
            waited = bodies(store, SCHEDULE_TOPIC) + bodies(store, TIMER_TOPIC)
            before = bodies(store, "orders")
            assert set(before) <= set(waited), "a copy outlived what it is a copy of"
            outcomes.add((len(waited), len(before)))
            store.deliver_due()
            assert Counter(bodies(store, "orders")) == Counter(waited)
            send(store, "afterwards")
            clock.advance(10_000)
            assert store.deliver_due() == 5
            assert list(store.verify()) == []
    assert len(outcomes) > 4
