"""`rocketpy store stat` tells what is there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker_core.storage.damaged_stores import FILE_SIZE
from tests.golden.recorded import messages, queue_ranges
from typer.testing import Result

import rocketpy
from rocketpy.broker_core.storage.commit_log import CommitLog

Run = Callable[..., Result]


@pytest.fixture
def told(run: Run, apache: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("stat", apache, "--json").stdout)
    return document


def test_apaches_queues_have_the_offsets_that_its_broker_told(told: dict[str, Any]) -> None:
    found = {
        (topic["name"], queue["queue_id"]): (queue["min_offset"], queue["max_offset"])
        for topic in told["topics"]
        for queue in topic["queues"]
    }
    assert found == queue_ranges()
    assert sum(topic["messages"] for topic in told["topics"]) == len(messages())


def test_the_log_is_told_by_its_first_and_last_message(told: dict[str, Any]) -> None:
    log, times = told["log"], [message["store_timestamp"] for message in messages()]
    last = max(messages(), key=lambda message: message["commit_log_offset"])
    assert (log["start"], log["end"]) == (0, last["commit_log_offset"] + last["store_size"])
    assert (log["first_stored_ms"], log["last_stored_ms"]) == (min(times), max(times))
    assert log["has_checksums"] is False
    assert 0 < log["size_on_disk"] < log["file_size"] == 1 << 20


def test_geometry_index_and_state_are_told(told: dict[str, Any]) -> None:
    assert told["geometry"]["index_slots"] == 500
    assert told["geometry"]["consume_queue_file_entries"] == 100
    assert told["index"]["files"] == 1
    assert told["index"]["entries"] == 276
    assert told["state"]["is_clean"] is True


def test_groups_have_their_lag(run: Run, store: Path) -> None:
    told = json.loads(run("stat", store, "--json").stdout)
    (group,) = told["groups"]
    assert (group["group"], group["topic"], group["lag"]) == ("billing", "orders", 200 - 15)
    assert group["committed"] == {"0": 10, "1": 5}


def test_people_get_a_table_that_fits_80_columns(run: Run, store: Path) -> None:
    text = run("stat", store).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "stopped cleanly" in text
    assert [line.split() for line in text.splitlines() if line.startswith("orders")] == [
        ["orders", "2", "200", "0", "to", "99"]
    ]
    assert [line.split() for line in text.splitlines() if line.startswith("billing")] == [
        ["billing", "orders", "185"]
    ]


def test_each_queue_is_shown_when_asked_for(run: Run, store: Path) -> None:
    lines = [line.split() for line in run("stat", store, "--queues").stdout.splitlines()]
    assert ["orders", "0", "0", "100", "100"] in lines
    assert ["1", "0", "100", "100"] in lines
    assert ["billing", "orders", "1", "5", "95"] in lines


def test_an_unclean_store_is_told(run: Run, store: Path) -> None:
    (store / "abort").write_text("999999999")
    assert "not stopped cleanly: process 999999999 is gone" in run("stat", store).stdout


def test_an_open_store_is_told(run: Run, store: Path) -> None:
    with rocketpy.open(store):
        assert "open in process" in run("stat", store).stdout


def test_it_reads_two_records_and_no_more(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = CommitLog.read
    places = set()

    def counted(log: CommitLog, offset: int) -> Any:
        places.add(offset)
        return read(log, offset)

    def walk(*_: object) -> None:
        raise AssertionError("a walk costs as much as there are messages")

    monkeypatch.setattr(CommitLog, "read", counted)
    monkeypatch.setattr(CommitLog, "walk", walk)
    assert run("stat", store).exit_code == 0
    assert len(places) <= 4  # the first, the newest, and the last of each queue


def test_lost_queues_and_lost_config_are_no_obstacle(run: Run, store: Path) -> None:
    shutil.rmtree(store / "consumequeue")
    shutil.rmtree(store / "config")
    told = json.loads(run("stat", store, "--json").stdout)
    assert told["topics"] == []
    assert told["log"]["end"] > 3 * FILE_SIZE


def test_a_uri_of_a_folder_is_taken_and_any_other_refused_by_name(run: Run, store: Path) -> None:
    assert run("stat", store.as_uri()).exit_code == 0
    for command in (("stat", "s3a://bucket/x"), ("repair", store, "--to", "s3a://bucket/x")):
        refused = run(*command)
        assert refused.exit_code == 2
        assert "'s3a:' is no file system" in refused.stderr.replace("\n", " ")
