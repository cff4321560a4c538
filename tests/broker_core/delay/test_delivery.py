"""Delivery: what is due comes to its topic, whole, in order, once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.delay.levels import due_ranges, stage_range
from rocketpy.broker_core.delay.progress import commit_moves, read_marks
from rocketpy.broker_core.delay.scheduling import scheduled
from rocketpy.broker_core.errors import CorruptStoreError, DeliveryMovedError, LeaseLostError
from rocketpy.broker_core.message import Host, Message
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.reading import QueueReader

CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=1 << 16,
    consume_queue_file_entries=50,
    index_slots=100,
    index_entries=400,
    retention_hours=None,
)
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store", config=CONFIG, clock=clock) as opened:
        opened.create_topic("orders", 4)
        opened.create_topic("others", 1)
        opened.create_topic(SCHEDULE_TOPIC, 18)
        yield opened
        assert list(opened.verify()) == []


def bodies(store: rocketpy.Store, topic: str = "orders") -> list[str]:
    found = store.read(topic, columns=["body", "commit_log_offset"]).read_all().to_pylist()
    return [row["body"].decode() for row in sorted(found, key=lambda r: r["commit_log_offset"])]


def test_each_level_is_delivered_when_it_is_due(store: rocketpy.Store, clock: ManualClock) -> None:
    start = clock.now_ms()
    for level in range(1, 19):
        store.send("orders", str(level), delay_level=level)
    for level in range(1, 19):
        due = start + CONFIG.delay_ms(level)
        clock.advance(due - 1 - clock.now_ms())
        assert store.deliver_due() == 0
        clock.advance(1)
        assert store.deliver_due() == 1
    assert bodies(store) == [str(level) for level in range(1, 19)]
    assert store._store.delay_offsets.all() == dict.fromkeys(range(1, 19), 1)


def waiting(born: Host, **changes: Any) -> Message:
    message = Message(
        topic="others",
        stored_body=b"\x78\x9cbody",
        properties={"TAGS": "paid", "KEYS": "k1 k2", "UNIQ_KEY": "U", "größe": "5"},
        flag=-7,
        sys_flag=(0x10 if born.is_v6 else 0) | 0x100,
        born_timestamp_ms=123_456,
        born_host=born,
        store_host=Host("10.1.2.3", 10911),
        reconsume_times=4,
        has_checksum=True,
    )
    return scheduled(replace(message, **changes), 1, CONFIG)


@pytest.mark.parametrize("born", [Host("192.0.2.1", 99), Host("2001:db8::1", 99)])
@pytest.mark.parametrize("has_checksum", [True, False])
def test_everything_but_the_place_stays_as_it_was(
    store: rocketpy.Store, clock: ManualClock, born: Host, has_checksum: bool
) -> None:
    put_message(store, waiting(born, has_checksum=has_checksum))
    before = store.scan(columns="*", decompress=False).read_all().to_pylist()[0]
    clock.advance(1000)
    assert store.deliver_due() == 1
    after = store.read("others", columns="*", decompress=False).read_all().to_pylist()[0]
    moved = {"topic", "queue_id", "queue_offset", "store_timestamp", "msg_id"}
    moved |= {"commit_log_offset", "store_size"}
    assert {n: v for n, v in after.items() if n not in moved} == {
        n: v for n, v in before.items() if n not in moved
    }
    assert (after["topic"], after["queue_id"]) == ("others", 0)
    assert store.query("others", key="k2").num_rows == 1
    assert store.read("others", tags="paid").read_all().num_rows == 1


def test_records_of_both_kinds_of_hosts_keep_their_order(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    hosts = [Host("192.0.2.1", 1), Host("::1", 1)]
    for number in range(9):
        born = hosts[number in (3, 4, 8)]
        body, flag = str(number).encode(), 0x10 * born.is_v6
        put_message(store, waiting(born, stored_body=body, sys_flag=flag))
    clock.advance(1000)
    assert store.deliver_due() == 9
    assert bodies(store, "others") == [str(number) for number in range(9)]


def without(name: str) -> Callable[[Message], Message]:
    def change(message: Message) -> Message:
        properties = {n: v for n, v in message.properties.items() if n != name}
        return replace(message, properties=properties)

    return change


def renamed(name: str, value: str) -> Callable[[Message], Message]:
    return lambda message: replace(message, properties={**message.properties, name: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("REAL_TOPIC"), "has no REAL_TOPIC"),
        (renamed("REAL_TOPIC", "../etc"), "topic name '../etc'"),
        (renamed("REAL_TOPIC", SCHEDULE_TOPIC), "which takes no messages"),
        (renamed("REAL_TOPIC", "RMQ_SYS_TRANS_HALF_TOPIC"), "which takes no messages"),
        (without("REAL_QID"), "not a queue id"),
        (renamed("REAL_QID", "-1"), "not a queue id"),
    ],
)
def test_a_message_that_has_nowhere_to_go_does_not_hold_up_the_next(
    store: rocketpy.Store,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Message], Message],
    words: str,
) -> None:
    host = Host("192.0.2.1", 1)
    put_message(store, change(waiting(host)))
    clock.advance(1000)
    assert store.deliver_due() == 0
    assert words in caplog.text
    put_message(store, waiting(host))
    clock.advance(1000)
    assert store.deliver_due() == 1
    assert store._store.delay_offsets.all() == {1: 2}


def test_a_topic_that_is_gone_is_made_again(store: rocketpy.Store, clock: ManualClock) -> None:
    put_message(store, waiting(Host("192.0.2.1", 1), topic="%RETRY%g"))
    put_message(store, waiting(Host("192.0.2.1", 1), topic="newer", queue_id=6))
    clock.advance(1000)
    assert store.deliver_due() == 2
    topics = store.topics()
    assert (topics["%RETRY%g"].write_queues, topics["newer"].write_queues) == (1, 7)


def test_what_apache_delivered_meanwhile_is_not_delivered_again(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    for number in range(5):
        store.send("orders", str(number), delay_level=1)
    clock.advance(1000)
    with store._store.locked():
        store._store.delay_offsets.put(1, 3)
    assert store.deliver_due() == 2
    assert bodies(store) == ["3", "4"]


def test_an_offset_of_apaches_that_is_behind_does_not_bring_anything_back(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.send("orders", "a", delay_level=1)
    clock.advance(1000)
    assert store.deliver_due() == 1
    with store._store.locked():
        store._store.delay_offsets.put(1, 0)  # as after a crash before it was written
    assert store.deliver_due() == 0
    assert bodies(store) == ["a"]


def test_of_two_that_planned_the_same_only_one_delivers(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.append("orders", pa.table({"body": ["a", "b"], "delay_level": [1, 2]}))
    clock.advance(HOUR_MS)
    inner = store._store
    ranges = due_ranges(inner, read_marks(inner), now_ms=clock.now_ms())
    plans = [[stage_range(inner, one, f"plan-{n}") for one in ranges] for n in range(2)]
    commit_moves(inner, plans[0])
    with pytest.raises(
        DeliveryMovedError, match=r"level 1 was planned from \[0\], but is at \[1\]"
    ):
        commit_moves(inner, plans[1])
    assert bodies(store) == ["a", "b"]


def test_one_that_lost_its_lease_delivers_nothing_more(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.send("orders", "a", delay_level=1)
    lease = Lease(store._store, LEASE, "service")
    lease.acquire()
    clock.advance(HOUR_MS)
    Lease(store._store, LEASE, "job").acquire()
    with pytest.raises(LeaseLostError):
        Deliverer(store._store, lease).deliver_due(clock.now_ms())
    assert bodies(store) == []


def test_a_damaged_level_does_not_hold_up_another(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "damaged"
    with rocketpy.open(path, config=CONFIG, clock=clock) as store:
        store.create_topic("orders", 1)
        for level in (1, 2, 2, 3):
            store.send("orders", f"level {level}", delay_level=level)
        clock.advance(HOUR_MS)
        reader = QueueReader(store._store.parts, SCHEDULE_TOPIC, 1)
        at = reader.queue.units(0, 1)["physical_offset"][0] + 92  # in its body
    with (path / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(at)
        log.write(b"X")
    with rocketpy.open(path, config=CONFIG, clock=clock) as store:
        with pytest.raises(CorruptStoreError, match="does not match its check sum"):
            store.deliver_due()
        assert bodies(store) == ["level 1", "level 3"]
        assert "level 2 is not delivered" in caplog.text
        assert store._store.delay_offsets.all() == {1: 1, 3: 1}


def test_a_deep_level_is_delivered_in_parts_with_the_others(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    deep = [f"deep {number}" for number in range(40)]
    store.append("others", pa.table({"body": deep, "delay_level": [1] * 40}))
    store.send("others", "other level", delay_level=2)
    lease = Lease(store._store, LEASE, "service")
    lease.acquire()
    clock.advance(HOUR_MS)
    lease.acquire()
    assert Deliverer(store._store, lease, most_rows=16).deliver_due(clock.now_ms()) == 41
    found = bodies(store, "others")
    assert found.index("other level") == 16  # behind the first part
    assert [body for body in found if body.startswith("deep")] == deep


def test_messages_that_retention_took_are_passed_over(
    store: rocketpy.Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    text = "x" * 2000
    for number in range(60):
        store.send("orders", f"{number} {text}", delay_level=1)
    files = store._store.parts.log.files
    files.remove(files.starts()[0])
    clock.advance(1000)
    with caplog.at_level(logging.ERROR):
        count = store.deliver_due()
    assert 0 < count < 60
    assert f"level 1: {60 - count} messages were deleted" in caplog.text


def test_compressed_and_empty_bodies_are_delivered_as_stored(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.send("orders", "text " * 100, compress="zstd", delay_level=1)
    store.append("orders", pa.table({"body": [""], "delay_level": [1]}))
    clock.advance(1000)
    assert store.deliver_due() == 2
    assert sorted(bodies(store)) == ["", "text " * 100]


def test_due_times_are_found_where_tag_codes_have_files_of_their_own(
    tmp_path: Path, clock: ManualClock
) -> None:
    config = replace(CONFIG, consume_queue_ext=True, consume_queue_ext_file_size=256)
    with rocketpy.open(tmp_path / "ext", config=config, clock=clock) as store:
        store.create_topic("orders", 1)
        for number in range(30):
            store.send("orders", str(number), tags=f"t{number % 2}", delay_level=1)
        clock.advance(999)
        store.append("orders", pa.table({"body": ["later"], "delay_level": [1]}))
        assert store.deliver_due() == 0
        clock.advance(1)
        assert store.deliver_due() == 30
        assert store.read("orders", tags="t1").read_all().num_rows == 15
        clock.advance(999)
        assert store.deliver_due() == 1
        assert list(store.verify()) == []


def test_a_level_that_lost_what_was_delivered_is_reported_not_passed_over(
    tmp_path: Path, clock: ManualClock
) -> None:
    with rocketpy.open(tmp_path / "cut", config=CONFIG, clock=clock) as store:
        store.create_topic("orders", 1)
        store.send("orders", "a", delay_level=1)
        store.send("orders", "b", delay_level=2)
        with store._store.locked():
            store._store.delay_offsets.put(1, 7)
        clock.advance(HOUR_MS)
        with pytest.raises(CorruptStoreError, match="level 1 is delivered up to there"):
            store.deliver_due()
        assert bodies(store) == ["b"]
        assert store._store.delay_offsets.all() == {1: 7, 2: 1}
