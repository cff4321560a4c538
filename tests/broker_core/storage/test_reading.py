"""Reading a damaged store: nothing wrong is handed out, and the place is named."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage import reading
from rocketpy.broker_core.storage.layout import QUEUE_UNIT_STRUCT


@pytest.fixture
def places(path: Path, roomy: rocketpy.StoreConfig) -> list[int]:
    """Twelve messages in a closed store; where their records lie."""
    with rocketpy.open(path, config=roomy) as store:
        store.create_topic("t", queues=1)
        store.create_topic("u", queues=1)
        for number in range(12):
            store.send("t", f"body {number}", keys=["k"])
        store.send("u", b"of another topic")
        found: list[int] = store.scan(columns=["commit_log_offset"]).read_all()[0].to_pylist()
    return found


def write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def log(path: Path) -> Path:
    return path / "commitlog" / ("0" * 20)


def queue(path: Path) -> Path:
    return path / "consumequeue" / "t" / "0" / ("0" * 20)


def read(path: Path, **options: object) -> list[bytes]:
    with rocketpy.open(path, read_only=True) as store:
        found: list[bytes] = store.read("t", **options).read_all()["body"].to_pylist()  # type: ignore[arg-type]
        return found


def test_a_damaged_record_is_not_handed_out(path: Path, places: list[int]) -> None:
    write(log(path), places[5] + 90, b"?")
    with pytest.raises(CorruptStoreError, match="does not match its check sum") as caught:
        read(path)
    assert caught.value.offset == places[5]


def test_messages_before_and_behind_damage_are_read(path: Path, places: list[int]) -> None:
    write(log(path), places[5] + 90, b"?")
    assert len(read(path, end=5)) == 5
    assert len(read(path, start=6)) == 6


def test_damage_that_only_a_check_sum_shows_passes_without_the_check(
    path: Path, places: list[int]
) -> None:
    write(log(path), places[5] + 88, b"B")
    assert read(path, check=False)[5] == b"Body 5"


@pytest.mark.parametrize(
    "unit",
    [
        lambda places: (places[4], 100, 0),  # another record's place and a wrong size
        lambda places: (places[12], places[12] - places[11], 0),  # of another topic
        lambda places: (places[5] + 1, 100, 0),  # no record begins there
        lambda _: (1 << 40, 100, 0),  # in no file
        lambda _: (-1, 100, 0),
    ],
)
def test_an_entry_that_means_another_record_is_refused(
    unit: Callable[[list[int]], tuple[int, int, int]], path: Path, places: list[int]
) -> None:
    write(queue(path), 5 * 20, QUEUE_UNIT_STRUCT.pack(*unit(places)))
    with pytest.raises(CorruptStoreError):
        read(path)


def test_a_last_entry_without_its_record_does_not_count_while_the_store_is_in_use(
    path: Path, places: list[int]
) -> None:
    (path / "abort").write_text("1")
    write(queue(path), 12 * 20, QUEUE_UNIT_STRUCT.pack(places[12] + 500, 100, 0))
    with rocketpy.open(path, read_only=True) as store:
        assert store.queues("t") == {0: (0, 12)}
    assert len(read(path)) == 12


def test_a_last_entry_without_its_record_is_damage_in_a_store_that_was_closed(
    path: Path, places: list[int]
) -> None:
    write(queue(path), 12 * 20, QUEUE_UNIT_STRUCT.pack(places[12] + 500, 100, 0))
    with pytest.raises(CorruptStoreError):
        read(path)


def test_a_missing_log_file_is_named(path: Path, places: list[int]) -> None:
    assert places
    log(path).rename(path / "elsewhere")
    (path / "commitlog" / f"{1 << 16:020d}").write_bytes(bytes(1 << 16))
    with rocketpy.open(path, read_only=True) as store:
        assert store.queues("t") == {0: (12, 12)}  # as if gone by retention


def forget_flushed(path: Path) -> None:
    """As if nothing had been synced yet."""
    write(path / "rocketpy" / "tail", 512, bytes(16))


def test_a_scan_stops_at_damage_with_records_behind_it(path: Path, places: list[int]) -> None:
    forget_flushed(path)
    write(log(path), places[5] + 90, b"?")
    with (
        rocketpy.open(path, read_only=True) as store,
        pytest.raises(CorruptStoreError, match=f"one follows at {places[6]}"),
    ):
        store.scan().read_all()


def test_a_scan_of_a_torn_end_just_ends(path: Path, places: list[int]) -> None:
    forget_flushed(path)
    write(log(path), places[12] + 50, bytes(500))
    with rocketpy.open(path, read_only=True) as store:
        assert store.scan().read_all().num_rows == 12


def test_a_scan_stops_where_durable_bytes_are_lost(path: Path, places: list[int]) -> None:
    write(log(path), places[12], bytes(500))
    with (
        rocketpy.open(path, read_only=True) as store,
        pytest.raises(CorruptStoreError, match="but the log was durable up to"),
    ):
        store.scan().read_all()


def test_a_key_that_means_a_damaged_record_finds_the_others(path: Path, places: list[int]) -> None:
    write(log(path), places[5] + 90, b"?")
    with rocketpy.open(path, read_only=True) as store:
        assert store.query("t", key="k").num_rows == 11


def test_small_batches_read_the_same(
    path: Path, places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read(path)
    assert len(places) == 13
    monkeypatch.setattr(reading, "BATCH_ROWS", 5)
    assert read(path) == whole
    monkeypatch.setattr(reading, "BATCH_BYTES", 1)
    assert read(path) == whole
    with rocketpy.open(path, read_only=True) as store:
        assert len(list(store.scan())) >= 3


def test_reading_logs_nothing(
    path: Path, places: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    assert places
    with caplog.at_level(logging.DEBUG):
        read(path)
    assert caplog.records == []
