"""`rocketpy broker` as a process, and what it says when it cannot be one."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import COMMAND, Run
from tests.broker_core.local.wire import Wire

import rocketpy

Process = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, "broker", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # if a test failed


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_it_says_that_it_is_ready_and_leaves_a_clean_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    config = tmp_path / "broker.conf"
    config.write_text(
        f"brokerName = shop\nstorePathRootDir = {path}\nmappedFileSizeCommitLog = 16777216\n"
        "maxHashSlotNum=100\nmaxIndexNum=400\n"
    )
    with rocketpy.local_broker() as other:
        with started("-c", config, "-n", other.namesrv_addr, "--port", 0) as process:
            line = first_line(process)
            begin, end_of_line = "The broker[shop, ", f"is {other.namesrv_addr}\n"
            assert line.startswith(begin)
            assert line.endswith(f"boot success. serializeType=JSON and name server {end_of_line}")
            address = line.removeprefix(begin).partition("]")[0]
            with Wire(address) as wire:
                assert wire.send("orders", b"one").code == 0
            with Wire(other.namesrv_addr) as name_server:
                assert address in name_server.route("TBW102")
            assert end(process, signal.SIGTERM) == (0, "")
        with Wire(other.namesrv_addr) as name_server:
            assert address not in name_server.route("TBW102")
    assert not (path / "abort").exists()
    with rocketpy.open(path) as store:
        assert store.read("orders").read_all()["body"].to_pylist() == [b"one"]
        assert list(store.verify()) == []


def test_a_whole_one_for_tests_prints_its_address_first_and_leaves_nothing() -> None:
    with started("--test", "--json") as process:
        facts = json.loads(first_line(process))
        assert Path(facts["store"]).is_dir()
        with Wire(facts["address"]) as wire:
            assert wire.send("orders", b"one").code == 0
        with Wire(facts["namesrv_addr"]) as name_server:
            assert facts["address"] in name_server.route("TBW102")
        assert end(process, signal.SIGINT) == (130, "")
    assert not Path(facts["store"]).parent.exists()


def test_all_properties_are_printed_and_what_is_not_known_is_told(
    rocketpy_: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("brokerName=shop\nflushDiskTyp=SYNC_FLUSH\nsomethingElse=1\n")
    ended = rocketpy_("broker", "-c", config, "--name", "other", "-p")
    assert ended.exit_code == 0
    lines = ended.stdout.splitlines()
    assert {"brokerName=other", "flushDiskType=ASYNC_FLUSH", "somethingElse=1"} <= {*lines}
    assert caplog.messages == [
        "nothing has the property flushDiskTyp; is flushDiskType meant?",
        "nothing has the property somethingElse",
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("listenPort=many", "listenPort=many: give a whole number"),
        ("flushDiskType=NEVER", "flushDiskType=NEVER: give ASYNC_FLUSH or SYNC_FLUSH"),
        ("tls.server.mode=enforcing", "give tls.server.certPath and tls.server.keyPath"),
        (r"brokerName=\u12", "hexadecimal digits"),
    ],
)
def test_a_value_that_cannot_be_is_one_line_and_exit_code_2(
    rocketpy_: Run, tmp_path: Path, line: str, text: str
) -> None:
    config = tmp_path / "broker.conf"
    config.write_text(f"{line}\nstorePathRootDir={tmp_path / 'store'}\n")
    ended = rocketpy_("broker", "-c", config)
    assert ended.exit_code == 2
    assert text in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_line_and_exit_code_2(rocketpy_: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = rocketpy_("broker", "--store", tmp_path, "--port", port)
    assert ended.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{port}: " in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_file_that_is_missing_is_one_line_and_exit_code_2(rocketpy_: Run) -> None:
    ended = rocketpy_("broker", "-c", "nowhere.conf")
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert "nowhere.conf" in ended.stderr


@pytest.mark.slow  # it waits ten seconds for the lock
def test_a_store_that_an_apache_broker_has_is_told(process: Process, tmp_path: Path) -> None:
    path = tmp_path / "store"
    rocketpy.open(path).close()
    with (path / "lock").open("r+b") as lock:  # as Apache's broker takes it, for life
        fcntl.lockf(lock, fcntl.LOCK_EX, 1)
        ended = process("broker", "--store", path, "--port", 0)
    assert ended.returncode == 2
    assert f"{path} is locked by process" in ended.stderr
    assert "stop it" in ended.stderr
    assert "Traceback" not in ended.stderr
