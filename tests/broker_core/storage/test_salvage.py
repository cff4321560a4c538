"""Finding records again behind damaged bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.message import Message, PhysicalOffset
from rocketpy.broker_core.storage import salvage
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.salvage import next_sound_record

SIZE = 10_000


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    return CommitLog(tmp_path, SIZE, Disk(), writable=True)


def record(at: int, body: bytes = b"body") -> bytes:
    return encode_record(Message(topic="t", stored_body=body, physical_offset=PhysicalOffset(at)))


@pytest.mark.parametrize("place", [0, 1, 5_000, SIZE - 200, SIZE, SIZE + 4_000])
def test_a_record_is_found_wherever_it_lies(place: int, log: CommitLog) -> None:
    log.files.write(place, record(place))
    assert next_sound_record(log, 0) == place
    assert next_sound_record(log, place) == place
    assert next_sound_record(log, place + 1) is None


def test_a_record_at_the_seam_of_two_parts_is_found(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(salvage, "_CHUNK", 512)
    for place in range(490, 530):
        log.files.zero_from(0)
        log.files.write(place, record(place))
        assert next_sound_record(log, 0) == place


def test_a_record_inside_a_body_is_not_taken_for_one(log: CommitLog) -> None:
    inner = record(0)
    outer = record(100, body=inner)
    log.files.write(100, b"????" + outer[4:])  # the outer one is damaged
    assert next_sound_record(log, 0) is None


def test_a_record_that_says_another_place_is_not_found(log: CommitLog) -> None:
    log.files.write(300, record(200))
    assert next_sound_record(log, 0) is None


def test_a_damaged_record_is_stepped_over(log: CommitLog) -> None:
    first = bytearray(record(100))
    first[90] ^= 1
    log.files.write(100, bytes(first))
    log.files.write(400, record(400))
    assert next_sound_record(log, 0) == 400
