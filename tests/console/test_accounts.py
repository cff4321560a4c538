"""The users file: hashed, for its owner alone, and looked at again when it changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.console.visiting import CHEAP, PASSWORD
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.console.accounts import (
    Accounts,
    AccountsError,
    Cost,
    put_account,
    remove_account,
)
from rocketpy.spark_jobs import cli  # noqa: F401  adds its commands


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users.json"
    put_account(path, "anna", "admin", PASSWORD, cost=CHEAP)
    return path


def test_a_password_is_known_and_is_not_in_the_file(file: Path) -> None:
    accounts = Accounts(file)
    account = accounts.checked("anna", PASSWORD)
    assert account is not None
    assert account.role == "admin"
    assert accounts.checked("anna", PASSWORD + "!") is None
    assert accounts.checked("ben", PASSWORD) is None
    assert PASSWORD not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in repr(account)


def test_two_users_of_one_password_have_other_hashes(file: Path) -> None:
    put_account(file, "ben", "viewer", PASSWORD, cost=CHEAP)
    users = json.loads(file.read_text())["users"]
    assert users["anna"]["hash"] != users["ben"]["hash"]


def test_by_default_a_check_costs_what_makes_guessing_dear() -> None:
    assert Cost().memory == 32 << 20
    assert Cost().p == 3


def test_a_change_of_the_file_counts_at_once(file: Path) -> None:
    accounts = Accounts(file)
    put_account(file, "ben", "viewer", PASSWORD, cost=CHEAP)
    assert accounts.checked("ben", PASSWORD) is not None
    remove_account(file, "ben")
    assert accounts.get("ben") is None
    file.chmod(0o644)
    with pytest.raises(AccountsError, match="others may read"):
        accounts.get("anna")


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0o600, "rocketpy console-user makes it"),
        ('{"users": {}}', 0o600, "it has no user"),
        ("nonsense", 0o600, "no file of rocketpy console-user"),
        ('{"users": {"a": {"role": "king"}}}', 0o600, "no file of rocketpy console-user"),
        ('{"users": []}', 0o600, "no file of rocketpy console-user"),
        ('{"users": {}}', 0o640, "chmod 600"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_the_start(
    content: str | None, mode: int, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "users.json"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(AccountsError, match=says):
        Accounts(path)


@pytest.mark.parametrize(
    ("name", "password", "says"),
    [
        ("anna", "short", "has 5 characters"),
        ("anna", "x" * 2000, "give 10 to 1024"),
        ("../anna", PASSWORD, "cannot be"),
        ("<script>", PASSWORD, "cannot be"),
        ("", PASSWORD, "cannot be"),
    ],
)
def test_a_name_or_a_password_that_cannot_be_is_refused(
    name: str, password: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(AccountsError, match=says):
        put_account(tmp_path / "users.json", name, "viewer", password, cost=CHEAP)
    assert not (tmp_path / "users.json").exists()


def test_the_command_makes_changes_and_removes_users(tmp_path: Path) -> None:
    path = str(tmp_path / "users.json")

    def run(*words: str, stdin: str = "") -> str:
        ended = CliRunner().invoke(app, ["console-user", path, *words], input=stdin)
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    assert run("anna", "--role", "admin", stdin=f"{PASSWORD}\n") == "anna made: admin\n"
    assert run("anna", "--role", "viewer", stdin=f"{PASSWORD}\r\n") == "anna changed: viewer\n"
    account = Accounts(Path(path)).checked("anna", PASSWORD)
    assert account is not None
    assert account.role == "viewer"
    assert run("anna", "--remove") == "anna removed\n"
    ended = CliRunner().invoke(app, ["console-user", path, "anna", "--remove"])
    assert (ended.exit_code, "no user 'anna'" in ended.stderr) == (2, True)


def test_on_a_terminal_the_password_is_asked_for_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    parent, child = os.openpty()
    program = "from rocketpy.spark_jobs.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "console-user", str(path), "anna"],
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    ) as process:
        os.close(child)
        seen = b""
        for _ in range(2):
            while not seen.endswith(b": "):
                seen += os.read(parent, 1)
            os.write(parent, f"{PASSWORD}\n".encode())
            seen += os.read(parent, 1)
        while b"made" not in seen:
            seen += os.read(parent, 1)
        assert process.wait(60) == 0
    os.close(parent)
    assert PASSWORD.encode() not in seen
    assert Accounts(path).checked("anna", PASSWORD) is not None
