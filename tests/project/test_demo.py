"""The demo that the README names runs, and ends well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.further
def test_the_demo_ends_by_itself_with_each_order_billed_once(tmp_path: Path) -> None:
    program = ROOT / "examples" / "demo.py"
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "each exactly once" in done.stdout
    assert "the store is sound" in done.stdout
    address, command = done.stdout.splitlines()[-2:]
    assert "http://127.0.0.1:9800/" in address
    assert command.split()[1:] == ["console", "rocketpy-demo/store"]
    seen = subprocess.run(
        [*command.split(), "--once"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "2 topics, " in seen.stdout, seen.stderr
    assert (tmp_path / "rocketpy-demo" / "lag.png").read_bytes().startswith(b"\x89PNG")
