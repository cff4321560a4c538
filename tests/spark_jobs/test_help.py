"""What `rocketpy job` says of itself."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.spark_jobs import cli  # adds its commands

COMMANDS = [command.callback.__name__ for command in cli.job_app.registered_commands]  # type: ignore[union-attr]


def text(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return CliRunner().invoke(app, ["job", *arguments, "--help"]).output


@pytest.mark.parametrize("command", COMMANDS)
def test_each_job_teaches_by_example(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = text(command, monkeypatch=monkeypatch)
    assert f"rocketpy job {command} shop-store" in said
    assert "Exit codes" in said
    assert f"rocketpy job {command} shop-store" in text(monkeypatch=monkeypatch)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_job_on_what_is_no_store_says_so_before_spark_starts(
    command: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("rocketpy.connector.session.SparkSession")
    others = {"replay": ["billing"], "backfill": ["table"], "restore": [f"{tmp_path}/none"]}
    words = ["job", command, f"{tmp_path}/nothing", *others.get(command, [])]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 2
    # A restore makes its store, from a table that must be there.
    missing = "there is no such Delta table" if command == "restore" else "is not a store"
    assert missing in ended.output
