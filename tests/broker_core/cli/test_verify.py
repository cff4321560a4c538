"""`rocketpy store verify`: exit codes, lines and objects."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.broker_core.storage.damaged_stores import overwrite, records
from typer.testing import Result

Run = Callable[..., Result]
Process = Callable[..., subprocess.CompletedProcess[str]]


def test_apaches_store_is_sound(process: Process, apache: Path) -> None:
    ended = process("store", "verify", apache)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{apache}: sound\n", "")


def test_damage_is_listed_line_by_line(process: Process, store: Path) -> None:
    place, _ = records(store)[99]
    overwrite(store, place + 100, b"\xff\x00\xff")
    ended = process("store", "verify", store)
    assert ended.returncode == 1
    assert any(f"at {place}" in line for line in ended.stdout.splitlines())
    count = len(ended.stdout.splitlines())
    assert ended.stderr == f"{store}: {count} problem{'s' if count > 1 else ''}\n"


def test_machines_get_an_object_per_problem(run: Run, store: Path) -> None:
    assert run("verify", store, "--json").stdout == ""
    (store / "checkpoint").unlink()
    ended = run("verify", store, "--json")
    assert ended.exit_code == 1
    (problem,) = map(json.loads, ended.stdout.splitlines())
    assert problem["path"] == str(store / "checkpoint")
    assert problem["invariant"] == "I10"
