"""What the command line says of itself, and how it says that something is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app

Process = Callable[..., subprocess.CompletedProcess[str]]


def test_version_is_that_of_the_package(process: Process) -> None:
    assert process("--version").stdout == f"rocketpy {rocketpy.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["store"], ["topic"], ["group"]])
def test_without_a_command_the_commands_are_shown(arguments: list[str]) -> None:
    assert "Examples" in CliRunner().invoke(app, arguments).output


@pytest.mark.parametrize(
    "arguments",
    [
        ["store", "stat"],
        ["store", "verify"],
        ["store", "dump"],
        ["store", "repair", "--in-place"],
        ["store", "repair", "--to", "other"],
    ],
)
def test_what_is_no_store_is_told_in_one_line_with_exit_code_2(
    process: Process, tmp_path: Path, arguments: list[str]
) -> None:
    ended = process(*arguments, tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"rocketpy: {tmp_path} is not a store")
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def test_a_file_that_cannot_be_read_is_no_traceback(process: Process, store: Path) -> None:
    (store / "config" / "topics.json").write_text("{")
    (store / "config" / "topics.json.bak").unlink(missing_ok=True)
    ended = process("store", "stat", store)
    assert ended.returncode == 2
    assert "topics.json" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_reads_no_message_code() -> None:
    import sys

    names = ("dump", "stat", "verify", "repair", "scan")
    code = (
        "import sys; import rocketpy.broker_core.cli.app; "
        f"print([n for n in {names} if f'rocketpy.broker_core.cli.{{n}}' in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "[]\n"
