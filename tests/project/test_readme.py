"""What the README shows runs as pasted, and so does the demo it names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_the_first_program_of_the_readme_runs_as_pasted(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(blocks[0])
    shown = run([str(program)], tmp_path)
    found = re.fullmatch(r"1000 bills; billing has read up to (\{.*\})\n", shown)
    assert found, shown
    assert sum(ast.literal_eval(found[1]).values()) == 1000


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_ends_by_itself_with_each_order_billed_once(tmp_path: Path) -> None:
    shown = run([str(ROOT / "examples" / "demo.py")], tmp_path)
    assert "each exactly once" in shown
    assert "the store is sound" in shown
    assert (tmp_path / "rocketpy-demo" / "lag.png").read_bytes().startswith(b"\x89PNG")


def test_the_readme_names_the_targets_that_make_has() -> None:
    readme = (ROOT / "README.md").read_text()
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for named in re.findall(r"^make (\w+)", readme, re.MULTILINE):
        assert named in targets
