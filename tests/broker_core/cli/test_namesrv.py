from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import COMMAND, Run

READY = "The Name Server boot success. serializeType=JSON, address 127.0.0.1:"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_says_where_it_listens_and_ends_at_a_signal(number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [*COMMAND, "namesrv", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY)
        with socket.create_connection(("127.0.0.1", int(line.removeprefix(READY)))):
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (code, "")


def test_options_win_over_the_file_and_what_is_not_known_is_told(
    rocketpy_: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "namesrv.conf"
    file.write_text("listenPort=1\nbindAddress=::1\nlistenport=2\n")
    ended = rocketpy_("namesrv", "-c", file, "--port", 3, "--print-config")
    assert ended.exit_code == 0
    assert "listenPort=3\nbindAddress=::1\n" in ended.stdout
    assert caplog.messages == ["nothing has the property listenport; is listenPort meant?"]


def test_a_port_that_is_taken_is_one_line_and_exit_code_2(rocketpy_: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = rocketpy_("namesrv", "--port", port)
    assert ended.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{port}: " in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_value_that_cannot_be_is_one_line_and_exit_code_2(rocketpy_: Run, tmp_path: Path) -> None:
    file = tmp_path / "namesrv.conf"
    file.write_text("listenPort=many\n")
    ended = rocketpy_("namesrv", "-c", file)
    assert (ended.exit_code, ended.stderr) == (
        2,
        "rocketpy: listenPort=many: give a whole number\n",
    )


def test_it_serves_on_ipv6() -> None:
    command = [*COMMAND, "namesrv", "--port", "0", "--bind", "::1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
    assert line.startswith('{"address":"::1:')
    assert process.returncode == 0
