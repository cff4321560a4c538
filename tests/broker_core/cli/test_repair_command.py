"""`rocketpy store repair`: exit codes, and what it tells."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker_core.storage.damaged_stores import contents, overwrite, problems, records, rows
from typer.testing import Result

import rocketpy

Run = Callable[..., Result]
Process = Callable[..., subprocess.CompletedProcess[str]]


def test_lost_queues_are_rebuilt_in_place(process: Process, store: Path) -> None:
    whole = rows(store)
    shutil.rmtree(store / "consumequeue" / "logs")
    ended = process("store", "repair", store, "--in-place")
    assert (ended.returncode, ended.stderr) == (0, "")
    first, second = ended.stdout.splitlines()
    assert first == f"{store}: 300 messages of 2 topics in 3 queues"
    assert second.startswith(f"the files that were replaced are in {store}/rocketpy/replaced-")
    assert rows(store) == whole


def test_what_is_lost_is_told(run: Run, store: Path, tmp_path: Path) -> None:
    place, size = records(store)[99]
    overwrite(store, place + 100, b"\xff\x00\xff")
    before = contents(store)
    ended = run("repair", store, "--to", tmp_path / "mended")
    assert ended.exit_code == 1
    assert ended.stdout.splitlines()[1:] == [
        f"{size} B of the commit log could not be read:",
        f"  {place} to {place + size}: no sound record",
        "1 message is lost:",
        "  orders queue 0: offset 33",
        "for 1 of them stands an empty one with the property ROCKETPY_LOST",
    ]
    assert contents(store) == before
    assert problems(tmp_path / "mended") == []


def test_machines_get_a_document(run: Run, store: Path, tmp_path: Path) -> None:
    place, size = records(store)[99]
    overwrite(store, place + 100, b"\xff\x00\xff")
    ended = run("repair", store, "--to", tmp_path / "mended", "--no-placeholders", "--json")
    told = json.loads(ended.stdout)
    assert told["skipped"] == [{"start": place, "end": place + size, "reason": "no sound record"}]
    assert told["lost"] == [{"topic": "orders", "queue_id": 0, "start": 33, "end": 34}]
    assert told["records"] == 299
    assert told["placeholders"] == 0
    assert told["is_whole"] is False


@pytest.mark.parametrize("options", [[], ["--to", "mended", "--in-place"]])
def test_one_way_must_be_chosen(run: Run, store: Path, options: list[str]) -> None:
    before = contents(store)
    ended = run("repair", store, *options)
    assert ended.exit_code == 2
    assert "either --to NEW" in ended.stderr
    assert contents(store) == before


def test_an_open_store_is_not_repaired_in_place(process: Process, store: Path) -> None:
    with rocketpy.open(store):
        ended = process("store", "repair", store, "--in-place")
    assert ended.returncode == 2
    assert "is locked by" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_queue_files_get_the_size_that_is_given(run: Run, store: Path, tmp_path: Path) -> None:
    shutil.rmtree(store / "consumequeue")
    mended = tmp_path / "mended"
    assert run("repair", store, "--to", mended, "--queue-file-entries", "16").exit_code == 0
    sizes = {file.stat().st_size for file in (mended / "consumequeue").rglob("*") if file.is_file()}
    assert sizes == {320}
