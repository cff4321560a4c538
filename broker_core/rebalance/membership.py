"""The members of a consumer group, each with a lease: `rocketpy/members/<group>.json`.

A member whose lease is over is dead to the others, as each of them sees it (observer.py). A member
names the queues that it reads (`holds`); no two members hold the same queue, as only handover.py
gives and takes them. Writers hold the store's lock; readers see one whole version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rocketpy.broker_core.errors import MemberNameError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.storage.checked_json import COMPACT, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import MEMBERS

VERSION = 1
_NAME = re.compile(r"[\w.@#:%|-]{1,120}", re.ASCII)
_SUFFIX = ".json"
MEMBERS_FILE = CheckedJson(
    key="content",
    form=COMPACT,
    remedy="remove it, if need be: members that live join again by themselves",
)


class Identity(NamedTuple):
    """Who asks: a process that is, or was, a member."""

    group: str
    name: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One consumer of a group."""

    name: str
    token: str  # of the process that is this member; another one under its name replaces it
    topics: tuple[str, ...]
    joined_ms: int
    lease_ms: int
    until_ms: int  # when the lease is over, by its own machine's clock
    acknowledged: int = 0  # the newest generation of which it holds no queue of others
    holds: frozenset[MessageQueue] = frozenset()

    def is_alive(self, now_ms: int) -> bool:
        """Whether its lease is not over by a clock; the clock of another machine may be wrong."""
        return now_ms < self.until_ms


Members = Mapping[str, Member]


def check_member_name(name: str) -> None:
    """Accept a name that can stand in files and tables.

    Raises:
        MemberNameError: it cannot.
    """
    if not _NAME.fullmatch(name):
        reason = "use 1 to 120 letters a-z, digits and . _ - @ # : % |"
        raise MemberNameError(name, reason)


def read_members(root: Path, group: str) -> dict[str, Member]:
    """Return all members of a group by name, the dead ones too that nobody has removed yet.

    Raises:
        CorruptStoreError: the file is damaged.
    """
    return MEMBERS_FILE.read(_path(root, group), lambda found: members_of(found["members"])) or {}


def write_members(root: Path, group: str, members: Members, disk: Disk) -> None:
    """Replace the members of a group durably. Call while holding the store's lock."""
    path = _path(root, group)
    if not members:
        if path.exists():
            disk.remove(path)
        return
    disk.make_folder(path.parent)
    MEMBERS_FILE.write(path, {"version": VERSION, "members": members_content(members)}, disk)


def groups_with_members(root: Path) -> list[str]:
    """Return the groups that somebody has joined."""
    try:
        names = [path.name for path in (root / MEMBERS).iterdir()]
    except FileNotFoundError:
        return []
    return sorted(
        name.removesuffix(_SUFFIX)
        for name in names
        if name.endswith(_SUFFIX) and not name.startswith(".")
    )


def _path(root: Path, group: str) -> Path:
    return root / MEMBERS / (group + _SUFFIX)


def members_content(members: Members) -> list[dict[str, Any]]:
    """Return members as JSON has them."""
    return [_member_content(members[name]) for name in sorted(members)]


def members_of(content: Sequence[Mapping[str, Any]]) -> dict[str, Member]:
    """Return the members that JSON has, by name."""
    return {found["name"]: _member(found) for found in content}


def _member_content(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "token": member.token,
        "topics": list(member.topics),
        "joinedMs": member.joined_ms,
        "leaseMs": member.lease_ms,
        "untilMs": member.until_ms,
        "acknowledged": member.acknowledged,
        "holds": [list(queue) for queue in sorted(member.holds)],
    }


def _member(found: Mapping[str, Any]) -> Member:
    return Member(
        name=found["name"],
        token=found["token"],
        topics=tuple(found["topics"]),
        joined_ms=found["joinedMs"],
        lease_ms=found["leaseMs"],
        until_ms=found["untilMs"],
        acknowledged=found["acknowledged"],
        holds=frozenset(MessageQueue(*queue) for queue in found["holds"]),
    )
