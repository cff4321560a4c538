"""The audit log of a console: who did what, from where, when, and what came of it.

A1  A line is written, and durable, before a change is begun: a log that cannot be written lets
    nothing be changed. Another line says what came of it. One without the other is a console that
    ended meanwhile.
A2  Lines are JSON, and are only ever added. Bodies of messages and passwords are in none of them.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rocketpy.broker_core.errors import RocketPyError

_MOST_TEXT, _MOST_ITEMS = 1000, 1000  # of a parameter, so that a line stays a line


class AuditError(RocketPyError):
    """Is raised when the audit log cannot be written; what it was about is not done."""

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"audit log {self.path}: {self.problem}; nothing is changed without it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doer:
    """Who does something, and from which address."""

    name: str
    role: str
    address: str


class Entry:
    """A change that was begun: tell what came of it."""

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    def done(self, result: Any) -> None:
        """Note what came of it."""
        self._note(phase="done", result=result)

    def failed(self, error: BaseException) -> None:
        """Note why it failed."""
        self._note(phase="failed", error=f"{type(error).__name__}: {error}")


class AuditLog:
    """A file to which lines are added. Threads, and other consoles, may add at the same time."""

    def __init__(self, path: Path) -> None:
        """Open the file; one that is missing is made, to be read by its owner alone.

        Raises:
            AuditError: it cannot be written.
        """
        self.path, self._lock = path, threading.Lock()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as cause:
            raise AuditError(path, cause.strerror or str(cause)) from cause

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def note(self, what: str, who: Doer, **facts: Any) -> None:
        """Add a line about something that is no change: a login, say."""
        self._write(what, who, facts)

    def begin(self, what: str, who: Doer, *, place: str, parameters: Mapping[str, Any]) -> Entry:
        """Add the line that stands before a change.

        Raises:
            AuditError: it cannot be written: do not change anything.
        """
        change = {"id": uuid.uuid4().hex, "place": place}

        def note(**facts: Any) -> None:
            self._write(what, who, {**change, **facts})

        note(phase="begun", parameters=parameters)
        return Entry(note)

    def _write(self, what: str, who: Doer, facts: Mapping[str, Any]) -> None:
        line = {
            "at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "user": who.name,
            "role": who.role,
            "from": who.address,
            "what": what,
            **{name: _short(value) for name, value in facts.items()},
        }
        data = json.dumps(line).encode() + b"\n"  # ASCII: no message can end a line, or hide one
        try:
            with self._lock:
                written = os.write(self._file, data)
                os.fsync(self._file)
        except OSError as cause:
            raise AuditError(self.path, cause.strerror or str(cause)) from cause
        if written < len(data):
            raise AuditError(self.path, "there is no room")


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}…"
    if isinstance(value, Mapping):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(each) for each in value[:_MOST_ITEMS]]
    return value
