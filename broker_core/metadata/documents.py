"""Reading and changing the documents of metadata files: pure functions.

Apache's files hold two kinds of objects. A *bean* (the document itself, one topic's settings) has
fixed members, which fastjson2 sorts by name. A *table* (topics by name, offsets by queue) has any
keys; the order of the names is that of a Java hash map, so new ones go to the end.
Nothing is changed in place: a change makes new objects along its path and shares the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rocketpy.broker_core.errors import MetadataError

Document = Mapping[str, Any]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Bean:
    """The members of one object of the file at `path`, each read with its type checked."""

    members: Mapping[str, Any]
    path: Path
    name: str  # what an error calls the object

    def get(self, member: str, default: _T) -> _T:
        """Return a member of the type that `default` has, or `default` if it is absent or null.

        Raises MetadataError when the member is of another type.
        """
        value = self.members.get(member)
        if value is None:
            return default
        if type(value) is not type(default):
            wanted = type(default).__name__
            reason = f"'{member}' of {self.name} is {value!r:.60}, not of type {wanted}; correct it"
            raise MetadataError(self.path, reason)
        return value

    def bean(self, member: str) -> Bean:
        """Return the object called `member`, empty if there is none."""
        empty: dict[str, Any] = {}
        return Bean(self.get(member, empty), self.path, f"'{member}'")


def with_members(bean: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bean with these members set, the others kept, in Apache's order."""
    return dict(sorted({**bean, **members}.items(), key=lambda member: str(member[0])))


def without(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the table without one of its keys."""
    return {name: value for name, value in table.items() if name != key}


def data_version(document: Bean) -> dict[str, Any]:
    """Return the file's version as it is; that of a new file is zero."""
    zero = {"counter": 0, "stateVersion": 0, "timestamp": 0}
    return {**zero, **document.bean("dataVersion").members}


def next_data_version(document: Bean, now_ms: int) -> dict[str, Any]:
    """Return the version after one more change (as DataVersion#nextVersion)."""
    counter = document.bean("dataVersion").get("counter", 0)
    return {**data_version(document), "counter": counter + 1, "timestamp": now_ms}
