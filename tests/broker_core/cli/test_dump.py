"""`rocketpy store dump`: every message, and only those that were asked for."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker_core.cli.conftest import COMMAND
from tests.broker_core.storage.damaged_stores import overwrite, records, rows
from tests.golden.recorded import Row, messages
from typer.testing import Result

Run = Callable[..., Result]


def dumped(result: Result) -> list[Row]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout_bytes.splitlines()]


def as_dumped(message: Row) -> Row:
    row = {name: value for name, value in message.items() if name != "broker"}
    try:
        return {**row, "body": row["body"].decode(), "body_encoding": "utf-8"}
    except UnicodeDecodeError:
        return {**row, "body": base64.b64encode(row["body"]).decode(), "body_encoding": "base64"}


@pytest.fixture
def recorded() -> list[Row]:
    return [as_dumped(message) for message in messages()]


def test_apaches_store_is_dumped_as_its_broker_served_it(
    run: Run, apache: Path, recorded: list[Row]
) -> None:
    assert dumped(run("dump", apache)) == recorded


def test_a_scan_has_the_same_in_log_order(run: Run, apache: Path, recorded: list[Row]) -> None:
    in_order = sorted(recorded, key=lambda row: row["commit_log_offset"])
    assert dumped(run("dump", apache, "--scan")) == in_order


SELECTIONS: list[tuple[list[str], Callable[[Row], Any]]] = [
    (["--topic", "lab_keys"], lambda row: row["topic"] == "lab_keys"),
    (["--topic", "lab_keys", "--queue", "1"],
     lambda row: (row["topic"], row["queue_id"]) == ("lab_keys", 1)),
    (["--sql", "TAGS IS NOT NULL AND UNIQ_KEY CONTAINS 'A'"],
     lambda row: row["tags"] is not None and "A" in (row["uniq_key"] or "")),
    (["--queue", "17"], lambda row: row["queue_id"] == 17),
    (["--from-offset", "2"], lambda row: row["queue_offset"] >= 2),
    (["--to-offset", "1"], lambda row: row["queue_offset"] < 1),
    (["--start-time", "1794786786711"], lambda row: row["store_timestamp"] >= 1794786786711),
    (["--end-time", "2026-11-15T23:53:06.711Z"],
     lambda row: row["store_timestamp"] < 1794786786711),
    (["--tags", "bad || bin"], lambda row: row["tags"] in ("bad", "bin")),
    (["--tags", "*"], bool),
    (["--key", "r3"], lambda row: "r3" in (row["keys"] or "").split()),
    (["--key", "C0000202668B30946E094D39023F0021"],
     lambda row: row["uniq_key"] == "C0000202668B30946E094D39023F0021"),
]  # fmt: skip


@pytest.mark.parametrize("is_scan", [False, True])
@pytest.mark.parametrize(("options", "is_wanted"), SELECTIONS)
def test_only_what_is_asked_for_is_dumped(
    run: Run,
    apache: Path,
    recorded: list[Row],
    options: list[str],
    is_wanted: Callable[[Row], bool],
    is_scan: bool,
) -> None:
    found = dumped(run("dump", apache, *options, *(["--scan"] if is_scan else [])))
    wanted = [row for row in recorded if is_wanted(row)]
    assert wanted
    assert sorted(found, key=lambda row: row["commit_log_offset"]) == sorted(
        wanted, key=lambda row: row["commit_log_offset"]
    )


def test_fields_are_those_asked_for(run: Run, store: Path) -> None:
    options = ["--topic", "logs", "--columns", "queue_offset,body", "--limit", "2"]
    assert dumped(run("dump", store, *options)) == [
        {"queue_offset": 0, "body": "message 1 x", "body_encoding": "utf-8"},
        {"queue_offset": 1, "body": "message 4 xxxx", "body_encoding": "utf-8"},
    ]


@pytest.mark.parametrize("limit", [0, 1, 100, 299, 300, 1000])
def test_at_most_so_many_are_dumped(run: Run, store: Path, limit: int) -> None:
    assert len(dumped(run("dump", store, "--limit", limit))) == min(limit, 300)


def test_a_scan_needs_no_queues(run: Run, store: Path) -> None:
    shutil.rmtree(store / "consumequeue")
    assert len(dumped(run("dump", store, "--scan"))) == 300
    assert dumped(run("dump", store)) == []


def test_damage_ends_a_scan_unless_it_is_to_be_skipped(run: Run, store: Path) -> None:
    whole = rows(store)
    place, size = records(store)[99]
    overwrite(store, place + 100, b"\xff\x00\xff")
    ended = run("dump", store, "--scan")
    assert ended.exit_code == 2
    assert "rocketpy store repair" in ended.stderr
    skipping = run("dump", store, "--scan", "--skip-damage")
    assert skipping.exit_code == 1
    assert f"skipped {size} bytes from {place} on" in skipping.stderr
    found = {json.loads(line)["commit_log_offset"] for line in skipping.stdout.splitlines()}
    assert found == {row["commit_log_offset"] for row in whole.values()} - {place}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--topic", "ordrs"], "did you mean 'orders'?"),
        (["--columns", "bodi"], "did you mean 'body'?"),
        (["--topic", "orders", "--queue", "9"], "has queues 0 to 1"),
        (["--start-time", "yesterday"], "'yesterday' is neither milliseconds nor"),
        (["--skip-damage"], "--skip-damage goes with --scan"),
        (["--limit", "-1"], "--limit"),
    ],
)
def test_a_wrong_option_is_refused(run: Run, store: Path, options: list[str], words: str) -> None:
    ended = run("dump", store, *options)
    assert ended.exit_code == 2
    assert words in " ".join(ended.stderr.replace("│", "").split())


def test_a_reader_that_has_enough_ends_it_quietly(store: Path) -> None:
    dump = subprocess.Popen(
        [*COMMAND, "store", "dump", str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert dump.stdout is not None
    assert dump.stderr is not None
    assert dump.stdout.read(10)
    dump.stdout.close()
    assert dump.stderr.read() == b""
    dump.stderr.close()
    assert dump.wait(timeout=60) == 141  # as a shell says it of one that SIGPIPE ended
