"""What `rocketpy job` says of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rocketpy
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


WITHOUT = """
import sys
sys.modules["pyspark"] = None  # as if it were not installed
from rocketpy.spark_jobs.cli import main
main()
"""


@pytest.mark.parametrize("words", [["report"], *(["job", command] for command in COMMANDS)])
def test_without_spark_a_command_says_how_to_get_it(words: list[str], tmp_path: Path) -> None:
    rocketpy.open(tmp_path / "shop").close()
    others = {"replay": ["billing"], "backfill": ["table"], "restore": ["table"]}
    command = [*words, str(tmp_path / "shop"), *others.get(words[-1], [])]
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr == 'rocketpy: this needs Spark: pip install "rocketpy-spark[spark]"\n'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["backfill", "shop", "table", "--topic", "order"], "did you mean 'orders'?"),
        (["backfill", "shop", "table", "--since", "soon"], "since"),
        (["replay", "shop", "billing"], "there is no topic '%DLQ%billing'"),
        (["replay", "shop", "readers", "--limit", "0"], "give 1 or more"),
    ],
)
def test_what_a_job_cannot_do_is_told_before_spark_starts(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("rocketpy.connector.session.SparkSession")
    with rocketpy.open("shop") as store:
        store.create_topic("orders")
        store.create_topic("%DLQ%readers")
    ended = CliRunner().invoke(app, ["job", *words])
    assert ended.exit_code == 2
    assert said in ended.output
