"""A small shop whose every figure is known: the store of the analytics' tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.intake.single import message_properties
from rocketpy.broker_core.message import Message

T0 = 1_699_999_980_000  # a whole minute
ORDERS = 24  # one every ten seconds: four minutes
HOT = "customer-1"
CONFIG = rocketpy.StoreConfig(index_slots=50, index_entries=60, retention_hours=None)


class Order(NamedTuple):
    """What was sent, and where it went."""

    key: str
    tag: str
    queue_id: int
    stored_ms: int


def orders() -> list[Order]:
    """Every second order is of one customer, whose queue is 0; queue 3 stays empty."""
    sent = []
    for number in range(ORDERS):
        key = HOT if number % 2 == 0 else f"customer-{2 + number % 3}"
        queue_id = 0 if key == HOT else 1 + number % 2
        tag = "paid" if number % 4 else "new"
        sent.append(Order(key, tag, queue_id, T0 + 10_000 * number))
    return sent


@contextmanager
def shop(path: Path) -> Iterator[tuple[rocketpy.Store, ManualClock]]:
    """Make the store; it is closed, and so wholly indexed, at the end of the block.

    The body of the first order cannot be read: no answer may want it.
    """
    clock = ManualClock(T0)
    with rocketpy.open(path, config=CONFIG, clock=clock) as store:
        store.create_topic("orders", queues=4)
        store.create_topic("mails", queues=1)
        for number, order in enumerate(orders()):
            keys = [order.key, "all"]  # and a unique key that is added by itself
            body = b"x" * (len(order.key) * 20)
            if number == 0:
                send_unreadable(store, body, order, keys)
            else:
                store.send("orders", body, tags=order.tag, keys=keys, queue_id=order.queue_id)
            clock.advance(10_000)
        yield store, clock


def send_unreadable(store: rocketpy.Store, body: bytes, order: Order, keys: list[str]) -> None:
    """Store a message whose body says that it is compressed, and is not."""
    message = Message(
        topic="orders",
        stored_body=body,
        sys_flag=int(SysFlag.COMPRESSED),
        properties=message_properties(order.tag, keys, None, None),
        queue_id=order.queue_id,
        born_timestamp_ms=order.stored_ms,
        has_checksum=True,
    )
    put_message(store, message)


def fail(store: rocketpy.Store, clock: ManualClock) -> None:
    """Let billing send three orders back; one of them comes twice and is given up."""
    store.create_group("billing", retry_max_times=1)
    for queue_offset, cause in enumerate(("no price", "no price", "timeout")):
        store.send_back(("orders", 0, queue_offset), group="billing", cause=cause)
    clock.advance(10_250)  # level 3 is ten seconds
    assert store.deliver_due() == 3
    store.send_back(("%RETRY%billing", 0, 0), group="billing", cause="no price at all")


def delay(store: rocketpy.Store, clock: ManualClock) -> None:
    """Delay mails by level 1 (a second), two equal ones in bulk, and one until a time."""
    store.send("mails", "single", delay_level=1)
    clock.advance(400)
    same = pa.table({"body": ["equal", "equal"], "delay_level": pa.array([1, 1], pa.int32())})
    store.append("mails", same)
    store.send("mails", "timed", deliver_at=clock.now_ms() + 2_000)
    clock.advance(900)
    assert store.deliver_due() == 1  # 300 ms late
    clock.advance(2_600)
    assert store.deliver_due() == 3  # 2,500 ms late twice, 1,500 ms late once
