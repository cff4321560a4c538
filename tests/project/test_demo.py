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
    last = done.stdout.splitlines()[-1]
    assert last.startswith("to look into it at http://127.0.0.1:9800/: rocketpy console ")
    words = [*last.rpartition("rocketpy ")[2].split(), "--once"]
    seen = subprocess.run(
        [Path(sys.executable).with_name("rocketpy"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "2 topics, " in seen.stdout, seen.stderr
    assert (tmp_path / "rocketpy-demo" / "lag.png").read_bytes().startswith(b"\x89PNG")
