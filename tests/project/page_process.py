"""A process that runs pages of the docs, one after the other, all with one Spark.

Spark looks for relative paths where its JVM was started, so all pages run in one folder, which is
emptied before each. It is a process of its own, as the JVM of the other tests is elsewhere.

`python -m tests.project.page_process`: a line with the path of a page comes in, one of JSON goes
out: what its blocks printed, or what went wrong.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.project.markdown_page import PYTHON, ROOT, Block, name_of, program_of
from tests.project.python_block import WrongOutputError, run_python
from tests.project.shell_block import Shell

_END_S = 30


class PageProcess:
    """The process, seen from the tests; use it in `with`."""

    def __init__(self, folder: Path) -> None:
        (folder / "page").mkdir(parents=True)
        self._log = (folder / "log").open("w+")
        path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.project.page_process"],
            cwd=folder / "page",
            env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> PageProcess:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            with suppress(BrokenPipeError):
                self._process.communicate(timeout=_END_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._log.close()

    def run(self, page: Path) -> list[str]:
        """Run a page; return what each of its blocks of Python printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{page}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"{page} ended the process that ran it:\n{self._log.read()}")
        answer = json.loads(line)
        if answer["failure"]:
            raise AssertionError(answer["failure"])
        printed: list[str] = answer["printed"]
        return printed


def main() -> None:
    """Run the pages that stdin names."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what pages, and the JVM, print goes to the log
    shell = Shell()
    for line in sys.stdin:
        _empty(Path.cwd())
        answer = _run(Path(line.strip()), shell)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    shell.close()


def _run(page: Path, shell: Shell) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: list[str] = []
    failure = None
    try:
        for block in program_of(page):
            _run_block(block, namespace, printed, shell)
    except (WrongOutputError, RuntimeError) as error:
        failure = f"{error}"
    except BaseException:
        failure = f"{name_of(page)} does not run:\n{traceback.format_exc()}"
    with suppress(Exception):
        _stop_queries()
    namespace.clear()
    gc.collect()  # stores that the page left open are closed
    return {"printed": printed, "failure": failure}


def _run_block(block: Block, namespace: dict[str, Any], printed: list[str], shell: Shell) -> None:
    if block.title is not None:
        Path(block.title).write_text(block.text)
    elif block.language in PYTHON:
        printed.append(run_python(block.text, namespace, name=block.page, line=block.line))
    else:
        shell.run(block)


def _stop_queries() -> None:
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    for query in spark.streams.active if spark else ():
        query.stop()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main()
