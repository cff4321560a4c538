"""`rocketpy console` as a process: what it prints, how it ends, what it costs others."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.broker_core.cli.test_broker_command import end
from tests.connector.cluster.places import FolderPlace
from tests.console.shop import fill
from tests.console.visiting import users
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.spark_jobs import cli  # noqa: F401  adds its commands

RUN = "import sys\nfrom rocketpy.spark_jobs.cli import main\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = FolderPlace(tmp_path_factory.mktemp("shop") / "store")
    with place.store:
        fill(place)
        return place.store.path


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_it_serves_on_loopback_and_ends_cleanly(
    sent: signal.Signals, code: int, store: Path
) -> None:
    arguments = ("console", str(store), "--port", "0", "--json")
    with subprocess.Popen(
        [sys.executable, "-c", f"{RUN}main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["console"]
            assert address.startswith("http://127.0.0.1:")
            port = int(address.rstrip("/").rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=30) as asking:
                asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert asking.recv(15) == b"HTTP/1.1 200 OK"
            assert end(process, sent) == (code, "")
        finally:
            process.kill()  # if the test failed


def test_once_prints_what_is_wrong(store: Path) -> None:
    ended = CliRunner().invoke(app, ["console", str(store), "--once"])
    assert ended.exit_code == 0
    assert "2 topics, 1 group, 16 unread, 4 dead letters" in ended.stdout
    assert f"warning: 4 dead letters of billing; rocketpy job replay {store}" in ended.stdout


def test_a_folder_without_a_store_and_a_port_that_is_taken_are_one_line(
    store: Path, tmp_path: Path
) -> None:
    ended = CliRunner().invoke(app, ["console", str(tmp_path)])
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = CliRunner().invoke(app, ["console", str(store), "--port", str(port)])
    assert ended.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{port}: " in ended.stderr


@pytest.mark.parametrize("missing", ["jinja2", "starlette", "uvicorn"])
def test_without_its_packages_it_says_what_to_install(missing: str, store: Path) -> None:
    program = f"{RUN}sys.modules[{missing!r}] = None\nmain()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "console", str(store)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    needs = 'this needs the console\'s packages: pip install "rocketpy-spark[console]"'
    assert (ended.returncode, ended.stderr) == (2, f"rocketpy: {needs}\n")


def test_nobody_else_pays_for_the_console() -> None:
    program = (
        "import sys, rocketpy\n"
        "with rocketpy.local_broker(): pass\n"
        "from rocketpy.spark_jobs.cli import run\n"
        "from rocketpy.broker_core.cli import app\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([name for name in ('jinja2', 'starlette', 'uvicorn', 'rocketpy.console')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--allow-changes"], "--allow-changes needs --users"),
        (["--audit", "log"], "--audit needs --users"),
        (["--users", "missing.json"], "rocketpy console-user makes it"),
        (["--users", "users.json", "--bind", "0.0.0.0"], "passwords would travel to 0.0.0.0"),
        (["--certificate", "c.pem"], "go together"),
        (["--users", "users.json", "--audit", "no/such/folder"], "nothing is changed without it"),
    ],
)
def test_what_would_not_be_safe_is_refused_at_the_start(
    words: list[str], says: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    ended = CliRunner().invoke(app, ["console", str(store), "--port", "0", *words])
    assert (ended.exit_code, says in ended.stderr) == (2, True), ended.stderr


def test_it_serves_users_and_notes_them_beside_their_file(store: Path, tmp_path: Path) -> None:
    path = users(tmp_path)
    arguments = ("console", str(store), "--port", "0", "--users", str(path), "--allow-changes")
    with subprocess.Popen(
        [sys.executable, "-c", f"{RUN}main()", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["console"]
            port = int(address.rstrip("/").rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=30) as asking:
                asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert asking.recv(12) == b"HTTP/1.1 303"
            assert end(process, signal.SIGTERM) == (0, "")
        finally:
            process.kill()  # if the test failed
    assert (tmp_path / "users.audit.jsonl").stat().st_mode & 0o777 == 0o600
