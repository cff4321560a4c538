from __future__ import annotations

import subprocess
import sys
from pathlib import Path

USES_IT = """
def test_a_store_is_there_and_empty(rocketpy_store):
    assert rocketpy_store.topics() == {}
    rocketpy_store.create_topic("orders", queues=2)
    rocketpy_store.send("orders", "one")
    assert rocketpy_store.read("orders").read_all().num_rows == 1

def test_the_next_one_is_empty_again(rocketpy_store):
    assert rocketpy_store.topics() == {}
"""
BREAKS_IT = """
def test_a_store_is_broken(rocketpy_store):
    rocketpy_store.create_topic("orders", queues=1)
    rocketpy_store.send("orders", "one")
    rocketpy_store.send("orders", "two")
    log = rocketpy_store.path / "commitlog" / f"{0:020}"
    with log.open("r+b") as file:
        file.seek(60)
        file.write(b"broken")
"""


def run(folder: Path, text: str) -> str:
    (folder / "test_program.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_a_program_s_tests_get_a_store_each(tmp_path: Path) -> None:
    assert "2 passed" in run(tmp_path, USES_IT)


def test_a_store_that_is_left_broken_fails_the_test(tmp_path: Path) -> None:
    found = run(tmp_path, BREAKS_IT)
    assert "1 passed, 1 error" in found
    assert "the test left a store with problems" in found
