"""Timer messages: delivered in the order of their seconds, once, unless they are recalled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.delay.progress import TIMER, TimerMark, read_marks
from rocketpy.broker_core.delay.timing import timed
from rocketpy.broker_core.embedded import Receipt
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata import TimerCheckpoint
from rocketpy.broker_core.metadata.names import TIMER_TOPIC

CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=1 << 16,
    consume_queue_file_entries=50,
    index_slots=100,
    index_entries=400,
    retention_hours=None,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", config=CONFIG, clock=clock) as opened:
        opened.create_topic("orders", 1)
        opened.create_topic(TIMER_TOPIC, 1)
        yield opened
        assert list(opened.verify()) == []


def bodies(store: rocketpy.Store) -> list[str]:
    found: list[bytes] = store.read("orders", columns=["body"]).read_all()["body"].to_pylist()
    return [body.decode() for body in found]


def test_messages_come_in_the_order_of_their_times(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    for wait_ms in (9000, 3000, 6000, 3500, 1):
        store.send("orders", str(wait_ms), deliver_at=now + wait_ms)
    seen = []
    for _ in range(10):
        clock.advance(1000)
        count = store.deliver_due()
        seen.append(count)
    assert seen == [1, 0, 1, 1, 0, 1, 0, 0, 1, 0]
    assert bodies(store) == ["1", "3000", "3500", "6000", "9000"]
    assert read_marks(store._store)[TIMER][:2] == (5, 5)


def test_what_is_noted_at_delivery(store: rocketpy.Store, clock: ManualClock) -> None:
    store.send("orders", "a", deliver_at=clock.now_ms() + 1500, properties={"region": "eu"})
    clock.advance(2000)
    assert store.deliver_due() == 1
    noted = dict(
        store.read("orders", columns=["properties"]).read_all().to_pylist()[0]["properties"]
    )
    assert noted["TIMER_DEQUEUE_MS"] == noted["TIMER_ENQUEUE_MS"] == str(clock.now_ms())
    assert (noted["REAL_TOPIC"], noted["region"]) == ("orders", "eu")


def test_a_recalled_message_does_not_come(store: rocketpy.Store, clock: ManualClock) -> None:
    now = clock.now_ms()
    receipts = [store.send("orders", str(n), deliver_at=now + 2500) for n in range(4)]
    store.recall(receipts[1])
    handle = receipts[3].recall_handle
    assert handle is not None
    store.recall(handle)
    clock.advance(3000)
    assert store.deliver_due() == 2
    assert bodies(store) == ["0", "2"]


def test_what_was_delivered_or_has_no_time_cannot_be_recalled(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    late = store.send("orders", "late", deliver_at=clock.now_ms() + 1000)
    plain = store.send("orders", "plain")
    clock.advance(1000)
    with pytest.raises(MessageRefusedError, match="cannot be recalled any more"):
        store.recall(late)
    with pytest.raises(MessageRefusedError, match="only messages sent with deliver_at"):
        store.recall(plain)


def test_a_message_stored_after_its_second_was_delivered_still_comes(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    store.send("orders", "waits", deliver_at=now + 60_000)
    store.send("orders", "first", deliver_at=now + 3000)
    message = Message(topic="orders", stored_body=b"late", has_checksum=True)
    clock.advance(3000)
    assert store.deliver_due() == 1
    put_message(store, timed(message, now + 2000, CONFIG, now_ms=now))
    assert store.deliver_due() == 1
    assert store.deliver_due() == 0
    assert bodies(store) == ["first", "late"]
    clock.advance(60_000)
    assert store.deliver_due() == 1


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_sends_deliveries_and_restarts_delivers_each_once(
    store: rocketpy.Store, clock: ManualClock, seed: int
) -> None:
    rng, expected, recalled = random.Random(seed), [], set()
    receipts: dict[str, tuple[int, Receipt]] = {}
    deliverer: Deliverer | None = None
    for step in range(150):
        match rng.choice(["send", "append", "recall", "deliver", "restart", "wait"]):
            case "send":
                at = clock.now_ms() + rng.randrange(1, 20_000)
                receipts[str(step)] = at, store.send("orders", str(step), deliver_at=at)
                expected.append(str(step))
            case "append":
                names = [f"{step}.{n}" for n in range(rng.randrange(1, 30))]
                times = [clock.now_ms() + rng.randrange(1, 9_000) for _ in names]
                store.append("orders", pa.table({"body": names, "deliver_at": times}))
                expected += names
            case "recall" if receipts:
                body, (at, receipt) = rng.choice(list(receipts.items()))
                if (at - 1) // 1000 * 1000 + 1 > clock.now_ms():
                    store.recall(receipt)
                    recalled.add(body)
            case "deliver":
                lease = Lease(store._store, LEASE, "service")
                lease.acquire()
                deliverer = deliverer or Deliverer(
                    store._store, lease, most_rows=rng.randrange(1, 9)
                )
                deliverer._lease = lease
                deliverer.deliver_due(clock.now_ms())
                lease.release()
            case "restart":
                deliverer = None
            case _:
                clock.advance(rng.randrange(3000))
    clock.advance(30_000)
    store.deliver_due()
    assert sorted(bodies(store)) == sorted(set(expected) - recalled)


def test_one_without_a_second_is_passed_over(
    store: rocketpy.Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    message = Message(topic="orders", stored_body=b"odd", has_checksum=True)
    waiting = timed(message, clock.now_ms() + 10, CONFIG, now_ms=clock.now_ms())
    put_message(store, replace(waiting, properties={"TIMER_OUT_MS": "soon"}))
    store.send("orders", "even", deliver_at=clock.now_ms() + 10)
    clock.advance(5000)
    assert store.deliver_due() == 1
    assert "1 timer messages without TIMER_OUT_MS" in caplog.text


def test_delivery_goes_on_where_apaches_wheel_was(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    for wait_ms in (1000, 2000, 9000, 1000):
        store.send("orders", str(wait_ms), deliver_at=now + wait_ms)
    clock.advance(4000)
    # Apache's broker has the first three in its wheel, and delivered all seconds before 3 s.
    with store._store.locked():
        store._store.timer_checkpoint.put(TimerCheckpoint(now + 3000, 3), now_ms=now)
    assert store.deliver_due() == 1
    assert bodies(store) == ["1000"]  # the one that it had not looked at
    clock.advance(9000)
    assert store.deliver_due() == 1


def test_apache_is_told_from_where_to_make_its_wheel_anew(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    (store.path / "timerlog").mkdir()
    stale = [store.path / "timerwheel", store.path / "timerlog" / "00000000000000000000"]
    for path in stale:
        path.write_bytes(b"\0")
    now = clock.now_ms()
    for wait_ms in (1000, 90_000, 2000):
        store.send("orders", str(wait_ms), deliver_at=now + wait_ms)
    clock.advance(5000)
    assert store.deliver_due() == 2
    told = store._store.timer_checkpoint.get()
    assert told.queue_offset == 1  # the first that still waits
    assert not any(path.exists() for path in stale)
    assert TimerMark(*read_marks(store._store)[TIMER]).end == 3


def apache_stops(store: rocketpy.Store, told: TimerCheckpoint) -> Path:
    """Leave the files that Apache's broker leaves; return its wheel."""
    with store._store.locked():
        store._store.timer_checkpoint.put(told, now_ms=told.read_time_ms)
    wheel = store.path / "timerwheel"
    wheel.write_bytes(b"\0")
    return wheel


def test_apaches_wheel_goes_even_if_it_had_stopped_at_the_second_that_we_delivered(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    store.send("orders", "a", deliver_at=now + 2000)
    told = TimerCheckpoint(now + 1000, 1)  # it has it in the wheel, and did not come to it
    wheel = apache_stops(store, told)
    clock.advance(5000)
    assert store.deliver_due() == 1
    assert store._store.timer_checkpoint.get() == told
    assert not wheel.exists()


def test_apaches_wheel_goes_if_what_waits_in_it_is_stored_anew(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    for wait_ms in (2000, 90_000):
        store.send("orders", str(wait_ms), deliver_at=now + wait_ms)
    clock.advance(5000)
    told = TimerCheckpoint(now + 4000, 2)
    wheel = apache_stops(store, told)
    store.hand_over()
    assert store.queues(TIMER_TOPIC)[0] == (0, 3)
    assert store._store.timer_checkpoint.get() == told
    assert not wheel.exists()


def test_apaches_wheel_stays_if_we_delivered_none_of_its_messages(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    store.send("orders", "ours", deliver_at=now + 2000)
    clock.advance(5000)
    assert store.deliver_due() == 1
    store.send("orders", "apache's", deliver_at=now + 90_000)
    told = TimerCheckpoint(now + 10_000, 2)
    wheel = apache_stops(store, told)
    store.send("orders", "of a level", delay_level=1)
    clock.advance(6000)
    assert store.deliver_due() == 1
    assert store._store.timer_checkpoint.get() == told
    assert wheel.exists()


def test_a_store_that_is_handed_over_has_what_waits_behind_what_was_delivered(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    now = clock.now_ms()
    waits = [90_000, 1000, 95_000, 90_000, 2000]
    receipts = [store.send("orders", str(ms), deliver_at=now + ms) for ms in waits]
    store.recall(receipts[3])
    clock.advance(5000)
    assert store.deliver_due() == 2
    assert store._store.timer_checkpoint.get().queue_offset == 0  # Apache would repeat two
    store.hand_over()
    assert store._store.timer_checkpoint.get().queue_offset == 6
    assert store.queues(TIMER_TOPIC)[0] == (0, 10)  # three messages and the recall, once more
    store.hand_over()
    assert store.queues(TIMER_TOPIC)[0] == (0, 10)
    assert store.deliver_due() == 0
    clock.advance(91_000)
    assert store.deliver_due() == 2
    assert bodies(store) == ["1000", "2000", "90000", "95000"]
