"""Apache's own filter classes, asked by the hundred: one JVM start for all questions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.installation import install
from tests.interop.java_process import java_command

from rocketpy.broker_core.message import join_properties

TIMEOUT_S = 120


def question(sql: str, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return what asks for the answers of one filter for some messages."""
    return {"sql": sql, "messages": [join_properties(each).decode() for each in messages]}


def ask_apache(questions: Sequence[Mapping[str, Any]], home: Path) -> list[dict[str, Any]]:
    """Return an answer to each question.

    Raises:
        RuntimeError: the program failed; shows what it printed.
    """
    command = java_command("SqlAnswers", class_path=install().class_path, home=home)
    done = subprocess.run(
        command,
        input="".join(json.dumps(each) + "\n" for each in questions),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(answers) != len(questions):
        raise RuntimeError(f"SqlAnswers ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return answers
