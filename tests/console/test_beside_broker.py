"""`rocketpy broker --console`: a console beside the broker, which ends with it."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.broker_core.cli.test_broker_command import end, first_line, started
from tests.console.shop import until
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app, console_beside


def is_gone(address: str) -> bool:
    try:
        urlopen(address, timeout=10).close()
    except (URLError, ConnectionError):
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_console_shows_the_store_and_ends_with_the_broker(
    number: signal.Signals, tmp_path: Path
) -> None:
    with started("--store", tmp_path / "store", "--port", 0, "--console", 0, "--json") as process:
        told = json.loads(first_line(process))
        with urlopen(told["console"], timeout=30) as page:
            assert str(tmp_path / "store").encode() in page.read()
        end(process, number)
        until(lambda: is_gone(told["console"]))


def test_a_port_that_is_taken_ends_the_broker_with_the_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started("--store", tmp_path / "store", "--port", 0, "--console", port) as process:
            out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert f"cannot listen on 127.0.0.1:{port}" in errors
    assert f"no console on port {port}" in errors
    with rocketpy.open(tmp_path / "store", read_only=True) as store:
        assert list(store.verify()) == []


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_beside, "_NEEDED", ("jinja2", "no_such_module"))
    monkeypatch.setenv("COLUMNS", "200")
    words = ["broker", "--store", str(tmp_path / "store"), "--console", "0"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 2
    assert "rocketpy-spark[console]" in ended.output
    assert "no_such_module" in ended.output


def test_a_test_broker_has_none() -> None:
    ended = CliRunner().invoke(app, ["broker", "--test", "--console", "0"])
    assert ended.exit_code == 2
    assert "--test" in ended.output
