"""Waiting messages of one store, delivered in turn by Apache's broker and by us: each once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.interop import workload
from tests.interop.apache import ApacheBroker, Setting

import rocketpy

pytestmark = pytest.mark.further

LEVELS = "1s 12s 2h"
CONFIG = replace(workload.CONFIG, delay_levels=LEVELS)
SETTINGS: dict[str, Setting] = {
    **workload.SETTINGS,
    "messageDelayLevel": LEVELS,
    "timerWheelEnable": True,
}
SOON, LATER, FAR = 1, 2, 3
TOPIC = "orders"


def now_ms() -> int:
    return int(time.time() * 1000)


def wait_for(count: int, look: Callable[[], list[str]]) -> list[str]:
    """Return what is delivered when it is so many; the test's time-out is the limit."""
    while len(found := look()) < count:
        time.sleep(0.2)
    return sorted(found)


def pulled(apache: ApacheBroker) -> list[str]:
    return [message["body"].decode() for message in apache.tool.pull([TOPIC])]


def read(store: rocketpy.Store) -> list[str]:
    found = store.read(TOPIC, columns=["body"]).read_all()["body"].to_pylist()
    return [body.decode() for body in found]


def java(name: str, **waiting: int) -> dict[str, Any]:
    return {"body": name.encode(), "keys": name, **waiting}


@pytest.mark.timeout(600)
def test_apache_and_we_deliver_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with ApacheBroker(path, settings=SETTINGS) as apache:
        apache.tool.send(TOPIC, [java("first")])
        sent = [
            java("java soon 1", delayLevel=SOON),
            java("java soon 2", delayLevel=SOON),
            java("java timed", deliverTimeMs=now_ms() + 1500),
            java("java later 1", delayLevel=LATER),
            java("java later 2", delayLevel=LATER),
            java("java timed later", deliverTimeMs=now_ms() + 14_000),
            java("java far", delayLevel=FAR),
        ]
        apache.tool.send(TOPIC, sent)
        by_apache = wait_for(4, lambda: pulled(apache))
    assert by_apache == ["first", "java soon 1", "java soon 2", "java timed"]

    ours = ["java later 1", "java later 2", "java timed later", "ours timed"]
    with rocketpy.open(path, config=CONFIG) as store:
        # Behind one that still waits when it is delivered.
        store.send(TOPIC, "left to Apache", deliver_at=now_ms() + 30_000)
        store.send(TOPIC, "ours timed", deliver_at=now_ms() + 1500)

        def deliver() -> list[str]:
            store.deliver_due()
            return read(store)

        assert wait_for(8, deliver) == sorted(by_apache + ours)
        assert list(store.verify()) == []
        # What is left to Apache's broker.
        start = now_ms()
        store.send(TOPIC, "left soon", delay_level=SOON)
        store.send(TOPIC, "left later", delay_level=LATER)
        store.send(TOPIC, "left timed", deliver_at=start + 12_500)
        store.recall(store.send(TOPIC, "recalled", deliver_at=start + 12_500))
        store.send(TOPIC, "left far", delay_level=FAR)
        store.hand_over()

    left = ["left later", "left soon", "left timed", "left to Apache"]
    with ApacheBroker(path, settings=SETTINGS) as apache:
        wait_for(12, lambda: pulled(apache))
        while now_ms() < start + 16_000:  # until what must not come would have come
            time.sleep(0.2)
        found = apache.tool.pull([TOPIC])
    bodies = Counter(message["body"].decode() for message in found)
    assert bodies == Counter(by_apache + ours + left)
    due = {"left soon": start + 1000, "left later": start + 12_000, "left timed": start + 12_500}
    for message in found:
        body = message["body"].decode()
        assert message["storeTimestamp"] >= due.get(body, 0), body
        if body in due:
            print(f"{body}: {message['storeTimestamp'] - due[body]} ms late")

    with rocketpy.open(path, config=CONFIG) as store:
        assert store.deliver_due() == 0
        assert Counter(read(store)) == bodies
        assert store._store.delay_offsets.all() == {SOON: 3, LATER: 3, FAR: 0}
        assert list(store.verify()) == []
