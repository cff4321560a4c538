"""What an error of ours said in a task: Spark hands on its traceback."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"^rocketpy\.[\w.]+\.(\w+Error): (.+)$", re.MULTILINE)


class TaskError(NamedTuple):
    """The last error of ours that a task failed with."""

    name: str  # of its class
    text: str


def task_error(cause: Exception) -> TaskError | None:
    """Return what our own error said; None if none did."""
    found = _LINE.findall(str(cause))
    return TaskError(*found[-1]) if found else None
