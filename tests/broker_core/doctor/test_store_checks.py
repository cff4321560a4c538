"""The doctor on stores: each fault is made, and found with its remedy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.broker_core.storage.damaged_stores import make_store

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.doctor.store_checks import check_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "store")


def found(path: Path) -> dict[str, Finding]:
    findings = {finding.check: finding for finding in check_store(path, SystemClock())}
    for finding in findings.values():
        assert finding.remedy or finding.verdict == "ok", "nobody is left alone with a fault"
    return findings


def test_a_sound_store_has_no_faults(store: Path) -> None:
    findings = found(store)
    assert set(findings) == {"kind", "lock", "stop", "damage", "clock", "disk"}
    assert {name: finding for name, finding in findings.items() if finding.verdict == "fault"} == {}


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    finding = found(tmp_path)["store"]
    assert finding.verdict == "fault"
    assert "give the folder that holds 'commitlog'" in finding.remedy


def test_a_store_of_a_kind_that_cannot_be_read_is_told(store: Path) -> None:
    database = store / "consumequeue_r"
    database.mkdir()
    (database / "000012.sst").write_bytes(b"x")
    shutil.rmtree(store / "consumequeue")
    finding = found(store)["kind"]
    assert finding.verdict == "fault"
    assert "RocksDB" in finding.what


def test_who_holds_the_lock_is_told(store: Path) -> None:
    program = (
        "import sys, rocketpy\n"
        "with rocketpy.open(sys.argv[1]) as store, store._store.locked():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        finding = found(store)["lock"]
        holder.communicate()
    assert finding.verdict == "warning"
    assert finding.what == f"process {holder.pid} holds the lock"


def test_an_unclean_stop_is_told_and_its_remedy_mends_it(store: Path) -> None:
    program = "import os, sys, rocketpy; store = rocketpy.open(sys.argv[1]); os._exit(1)"
    subprocess.run([sys.executable, "-c", program, store], check=False)
    finding = found(store)["stop"]
    assert finding.verdict == "warning"
    code = finding.remedy.split('"')[1]
    subprocess.run([sys.executable, "-c", code], check=True)
    assert found(store)["stop"].verdict == "ok"


def test_damage_is_told(store: Path) -> None:
    log = next((store / "commitlog").iterdir())
    with log.open("r+b") as file:
        file.seek(120)
        file.write(b"\xff")
    finding = found(store)["damage"]
    assert finding.verdict == "fault"
    assert finding.remedy == f"rocketpy store repair {store} --to mended-store"


def test_a_store_whose_settings_are_no_json_is_told(store: Path) -> None:
    for path in (store / "config").glob("topics.json*"):
        path.write_text("{")
    finding = found(store)["damage"]
    assert finding.verdict == "fault"
    assert "topics.json" in finding.what


class Ahead:
    """A clock that is wrong by an hour."""

    def now_ms(self) -> int:
        return SystemClock().now_ms() + 3_600_000


def test_messages_from_the_future_are_told(tmp_path: Path) -> None:
    with rocketpy.open(tmp_path / "ahead", clock=Ahead()) as store:
        store.create_topic("orders", 1)
        store.send("orders", b"1")
    finding = found(tmp_path / "ahead")["clock"]
    assert finding.verdict == "fault"
    assert "from now" in finding.what


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("free_of_100_gib", "verdict", "remedy"),
    [
        (90.0, "ok", ""),
        (20.0, "warning", "expired files are deleted at any hour"),
        (10.0, "fault", "the oldest files of the log are deleted"),
        (0.0, "fault", "the next file of the log may not fit"),
    ],
)
def test_little_disk_is_told(
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    free_of_100_gib: float,
    verdict: str,
    remedy: str,
) -> None:
    free = int(free_of_100_gib * (1 << 30))
    usage = Usage(100 << 30, (100 << 30) - free, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    finding = found(store)["disk"]
    assert finding.verdict == verdict
    assert remedy in finding.remedy
