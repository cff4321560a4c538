"""A block for a shell, run by bash in the folder of its page, with `rocketpy` on the path.

A ```console block has commands behind `$ `, with what each prints below it, `…` for anything; it is
compared. Of a ```bash block only the exit code counts. `make …` is checked to be a target, not run:
targets are for the checkout.

`rocketpy job …` and `report` are handed to this process, which has a Spark running: starting one
takes longer than all else together. Everything else is a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.project.markdown_page import ROOT, Block
from tests.project.python_block import compare

_TARGETS = re.compile(r"^([a-z]+):.*##", re.MULTILINE)
_ROCKETPY = """#!{python}
import json, os, socket, sys

arguments = sys.argv[1:]
if arguments[:1] not in (["job"], ["report"]):
    sys.argv[0] = "rocketpy"
    from rocketpy.spark_jobs.cli import main
    main()
    sys.exit()
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect({address!r})
    asking.sendall(json.dumps(arguments).encode() + b"\\n")
    answer = json.loads(asking.makefile().read())
sys.stdout.write(answer["stdout"])
sys.stderr.write(answer["stderr"])
sys.exit(answer["exit_code"])
"""


class Shell:
    """Runs blocks; keeps the command `rocketpy` and the socket that it speaks to in a folder."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rocketpy-docs-")
        folder = Path(self._folder.name)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / "jobs"))
        self._server.listen()
        command = folder / "rocketpy"
        command.write_text(_ROCKETPY.format(python=sys.executable, address=str(folder / "jobs")))
        command.chmod(0o755)
        path = [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
        self._environment = os.environ | {"PATH": os.pathsep.join(path), "COLUMNS": "80"}

    def close(self) -> None:
        """Remove what was made."""
        self._server.close()
        self._folder.cleanup()

    def run(self, block: Block) -> None:
        """Run a block in the folder one is in."""
        if is_of_make(block):
            _check_targets(block)
        elif block.language == "console":
            for command, expected in commands_of(block):
                compare(self._bash(command, block), expected, f"{block}: {command}")
        else:
            self._bash(block.text, block)

    def _bash(self, script: str, block: Block) -> str:
        """Run a script, and the jobs that it asks for; return what it prints."""
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            while process.poll() is None:
                if select.select([self._server], [], [], 0.02)[0]:
                    self._answer()
            output.seek(0)
            printed = output.read()
        if process.returncode:
            raise RuntimeError(f"{block}: exit code {process.returncode} of\n{script}\n{printed}")
        return printed

    def _answer(self) -> None:
        asking, _ = self._server.accept()
        with asking, asking.makefile("rw") as stream:
            stream.write(json.dumps(_run_job(json.loads(stream.readline()))))


def _run_job(arguments: list[str]) -> dict[str, str | int]:
    from typer.testing import CliRunner

    import rocketpy.spark_jobs.cli  # noqa: F401  it adds `job` to the app
    from rocketpy.broker_core.cli import app

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    command_line, sys.argv = sys.argv, ["rocketpy", *arguments]
    try:
        result = CliRunner().invoke(app, arguments, prog_name="rocketpy")
    finally:
        sys.argv = command_line
        for number, handler in before.items():
            signal.signal(number, handler)
    told = result.stderr
    if result.exception and not isinstance(result.exception, SystemExit):
        told += repr(result.exception)
    return {"stdout": result.stdout, "stderr": told, "exit_code": result.exit_code}


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with what it is to print."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert parts[0].strip() == "", f"{block} does not begin with '$ '"
    found = []
    for part in parts[1:]:
        lines = part.rstrip("\n").split("\n")
        long = 1
        while lines[long - 1].endswith("\\"):
            long += 1
        found.append(("\n".join(lines[:long]), "\n".join(line.rstrip() for line in lines[long:])))
    return found


def is_of_make(block: Block) -> bool:
    """Whether a block only names targets of the project."""
    return all(line.startswith("make ") for line in block.text.splitlines() if line.strip())


def _check_targets(block: Block) -> None:
    targets = _TARGETS.findall((ROOT / "Makefile").read_text())
    for line in block.text.splitlines():
        named = shlex.split(line, comments=True)[1:2]
        assert set(named) <= set(targets), f"{block}: make has no target {named}"
