"""The shared end of the log, as processes see it that write it in turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import TAIL_FILE
from rocketpy.broker_core.storage.tail import TailFile, TailState


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / TAIL_FILE).parent.mkdir()
    return tmp_path


def test_an_end_that_another_process_wrote_is_seen(root: Path) -> None:
    ours = TailFile(root, Disk(), writable=True)
    others = TailFile(root, Disk(), writable=True)
    for end in range(1, 6):
        writer, reader = (ours, others) if end % 2 else (others, ours)
        writer.write(TailState(end * 100, end))
        assert writer.read() == reader.read() == TailState(end * 100, end)


def test_an_end_that_was_damaged_since_it_was_written_is_not_believed(root: Path) -> None:
    tail = TailFile(root, Disk(), writable=True)
    tail.write(TailState(100, 1))
    data = bytearray((root / TAIL_FILE).read_bytes())
    data[11] ^= 1
    with (root / TAIL_FILE).open("r+b") as file:
        file.write(data)
    assert tail.read() is None
    tail.write(TailState(100, 1))
    assert tail.read() == TailState(100, 1)
