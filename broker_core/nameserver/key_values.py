"""Values by namespace and key, kept in a file: `kvConfig.json`, in Apache's own form.

A value that was put is on disk when put() returns. A file that cannot be understood is an error at
the start: to begin with nothing would write over it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.metadata.config_file import Replaces
from rocketpy.broker_core.protocol import java_json

ORDER_TOPICS = "ORDER_TOPIC_CONFIG"  # the namespace of topics whose order is kept across brokers
_TABLE = "configTable"

Tables = dict[str, dict[str, str]]


class KeyValueFileError(RocketPyError):
    """Is raised when the file of a name server's values cannot be understood."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return (
            f"{self.path} does not hold the values of a name server ({self.reason}); put it right, "
            "or move it away to begin without any"
        )


class KeyValues:
    """The values of a name server. Any thread may use it; without a path they are not kept."""

    def __init__(self, path: Path | None, disk: Replaces) -> None:
        self._path, self._disk = path, disk
        self._lock = threading.Lock()
        # Replaced as a whole, so that whoever reads needs no lock.
        self._tables = _load(path) if path is not None else {}

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value; None if there is none."""
        return self._tables.get(namespace, {}).get(key)

    def all(self, namespace: str) -> Mapping[str, str] | None:
        """Return the values of a namespace by key; None if it never had any."""
        return self._tables.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Keep a value."""
        with self._lock:
            known = self._tables.get(namespace, {})
            self._save({**self._tables, namespace: {**known, key: value}})

    def delete(self, namespace: str, key: str) -> None:
        """Forget a value; nothing if there is none."""
        with self._lock:
            known = self._tables.get(namespace, {})
            if key in known:
                left = {name: value for name, value in known.items() if name != key}
                self._save({**self._tables, namespace: left})

    def _save(self, tables: Tables) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._disk.replace(self._path, java_json.dumps({_TABLE: tables}))
        self._tables = tables


def _load(path: Path) -> Tables:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    if not data.strip():
        return {}
    try:
        document = java_json.loads(data)
    except ValueError as cause:
        raise KeyValueFileError(str(path), str(cause)) from cause
    tables = document.get(_TABLE) if isinstance(document, dict) else document
    if tables is None:
        return {}
    if not isinstance(tables, dict):
        raise KeyValueFileError(str(path), f"there is no table {_TABLE!r}")
    return {str(namespace): _table(path, table) for namespace, table in tables.items()}


def _table(path: Path, table: object) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(each, str) for each in table.values()):
        raise KeyValueFileError(str(path), "a namespace that is no table of texts")
    return {str(key): value for key, value in table.items()}
