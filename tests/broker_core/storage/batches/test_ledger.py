from __future__ import annotations

import json
import zlib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.broker_core.storage.batches.ledger import (
    MOST_WRITERS,
    Ledger,
    PendingBatch,
    read_ledger,
    write_ledger,
)
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import LEDGER

BATCH = PendingBatch(writer="q", number=7, begin=100, size=20, crc=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rocketpy").mkdir()
    return tmp_path


def test_a_missing_ledger_is_empty(root: Path) -> None:
    assert read_ledger(root) == Ledger()


def test_what_is_written_is_read(root: Path) -> None:
    ledger = Ledger({"a": 1, "b": 2}, BATCH)
    write_ledger(root, ledger, Disk())
    assert read_ledger(root) == ledger


def test_only_the_noted_number_itself_is_a_replay() -> None:
    ledger = Ledger(pending=BATCH).without_pending(is_in_log=True)
    assert ledger.pending is None
    assert [ledger.is_replay("q", number) for number in (7, 8)] == [True, False]
    assert not ledger.is_replay("other", 0)


def test_a_number_below_the_noted_one_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(StaleBatchError, match=r"batch 6 of 'q' .* batch 7 .* new checkpoint"):
        Ledger({"q": 7}).is_replay("q", 6)


def test_a_former_name_counts_until_there_is_a_batch_of_the_new_one() -> None:
    old = Ledger({"query 1": 7})
    assert old.is_replay("query 1 topic t", 7, "query 1")
    assert not old.is_replay("query 1 topic t", 8, "query 1")
    with pytest.raises(StaleBatchError):
        old.is_replay("query 1 topic t", 6, "query 1")
    both = Ledger({"query 1": 9, "query 1 topic t": 8})
    assert both.is_replay("query 1 topic t", 8, "query 1")


def test_a_batch_that_is_not_in_the_log_is_forgotten() -> None:
    assert Ledger({"a": 1}, BATCH).without_pending(is_in_log=False) == Ledger({"a": 1})


def test_a_batch_of_nobody_is_not_noted() -> None:
    nobodys = replace(BATCH, writer=None)
    assert Ledger({"a": 1}, nobodys).without_pending(is_in_log=True) == Ledger({"a": 1})
    assert not Ledger().is_replay(None, 0)


def test_the_writer_that_committed_longest_ago_goes_when_there_are_too_many() -> None:
    numbers = {f"w{n}": n for n in range(MOST_WRITERS)}
    noted = Ledger(numbers, replace(BATCH, writer="w0")).without_pending(is_in_log=True)
    assert len(noted.numbers) == MOST_WRITERS
    noted = Ledger(noted.numbers, BATCH).without_pending(is_in_log=True)
    assert "w1" not in noted.numbers
    assert {"w0", "w2", "q"} <= noted.numbers.keys()


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"crc": 1, "ledger": {}}', b"\xff"])
def test_a_damaged_ledger_is_never_taken_for_empty(root: Path, damage: bytes) -> None:
    (root / LEDGER).write_bytes(damage)
    with pytest.raises(CorruptStoreError, match="ledger of batches"):
        read_ledger(root)


def test_a_changed_number_is_found(root: Path) -> None:
    write_ledger(root, Ledger({"a": 1}), Disk())
    text = (root / LEDGER).read_text()
    (root / LEDGER).write_text(text.replace('"a": 1', '"a": 2'))
    with pytest.raises(CorruptStoreError):
        read_ledger(root)


def test_a_note_is_kept_if_and_only_if_its_batch_is_in_the_log(root: Path) -> None:
    noted = Ledger({"q": 6}, replace(BATCH, note={"at": [1, 2]}), {"q": {"at": [0]}, "r": {}})
    write_ledger(root, noted, Disk())
    assert read_ledger(root) == noted
    assert noted.without_pending(is_in_log=True).notes == {"q": {"at": [1, 2]}, "r": {}}
    assert noted.without_pending(is_in_log=False).notes == noted.notes


def test_a_batch_without_a_note_leaves_the_old_one() -> None:
    ledger = Ledger({"q": 6}, BATCH, {"q": {"at": [0]}}).without_pending(is_in_log=True)
    assert ledger.notes == {"q": {"at": [0]}}


def test_a_ledger_from_before_there_were_notes_is_read(root: Path) -> None:
    content = {"numbers": {"a": 1}, "pending": {**asdict(BATCH)}}
    del content["pending"]["note"]
    crc = zlib.crc32(json.dumps(content).encode())
    (root / LEDGER).write_text(json.dumps({"crc": crc, "ledger": content}, indent=1))
    assert read_ledger(root) == Ledger({"a": 1}, BATCH)
    write_ledger(root, Ledger({"a": 1}, BATCH), Disk())
    assert "note" not in (root / LEDGER).read_text()  # nor does an older version meet one
