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
USES_BROKER = """
def test_a_broker_is_there_and_empty(rocketpy_broker):
    with rocketpy_broker.store() as store:
        assert "orders" not in store.topics()
        store.create_topic("orders", queues=2)
        store.send("orders", "one")
    rocketpy_broker.faults.fill_disk()  # ends with the test

def test_the_next_one_is_empty_again_and_has_the_same_address(rocketpy_broker):
    with rocketpy_broker.store() as store:
        assert "orders" not in store.topics()
    rocketpy_broker.kill_broker()

def test_one_that_was_killed_runs_again(rocketpy_broker):
    assert rocketpy_broker.brokers[0].is_running
"""
BREAKS_BROKER = """
def test_a_store_is_broken(rocketpy_broker):
    with rocketpy_broker.store() as store:
        store.create_topic("orders", queues=1)
        store.send("orders", "one")
        store.send("orders", "two")
    with (rocketpy_broker.store_path / "commitlog" / f"{0:020}").open("r+b") as file:
        file.seek(60)
        file.write(b"broken")

def test_the_next_one_is_sound(rocketpy_broker):
    pass
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


def test_a_program_s_tests_share_a_broker_that_is_empty_for_each(tmp_path: Path) -> None:
    assert "3 passed" in run(tmp_path, USES_BROKER)


def test_a_broker_s_store_that_is_left_broken_fails_the_test(tmp_path: Path) -> None:
    found = run(tmp_path, BREAKS_BROKER)
    assert "2 passed, 1 error" in found
    assert "the test left a store with problems" in found
