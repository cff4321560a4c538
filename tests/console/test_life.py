"""The life of a message that waits, is tried again, is given up: told by any of its copies."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import EVERY_MESSAGE
from rocketpy.console.folder import FolderReader
from rocketpy.console.life import life_of

TRIED = "%RETRY%billing"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    clock = ManualClock()
    with rocketpy.open(tmp_path / "store", clock=clock) as store:
        store.create_topic("orders", 1)
        receipt = store.send("orders", "1 euro", keys="o-1")
        store.commit("billing", "orders", {0: 1})
        clock.advance(1_000)
        store.send_back(receipt, group="billing", delay_level=2, cause="no price")
        clock.advance(6_000)
        assert store.deliver_due() == 1
        clock.advance(1_000)
        store.send_back((TRIED, 0, 0), group="billing", delay_level=-1, cause="still no price")
    return tmp_path / "store"


@pytest.mark.parametrize("topic", ["orders", TRIED, "%DLQ%billing"])
def test_every_copy_tells_the_whole_life(topic: str, path: Path) -> None:
    reader = FolderReader(path)
    (message,) = reader.read(MessageQueue(topic, "rocketpy", 0), 0, 1, EVERY_MESSAGE)
    life = life_of(reader, message)
    assert [(step.message.topic, step.what) for step in life.steps] == [
        ("orders", "stored"),
        ("SCHEDULE_TOPIC_XXXX", "waits to be tried again, try 1, delay level 2"),
        (TRIED, "given to its group again, try 1"),
        ("%DLQ%billing", "given up: still no price"),
    ]
    assert life.troubles == ()
    reader.close()
