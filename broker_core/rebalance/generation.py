"""Generations: which member of a group shall read which queue, since when and why.

`rocketpy/generations/<group>.json` holds the newest. A generation says where queues belong; who
reads a queue at this moment is what members hold (membership.py), and handover.py leads from one to
the other. Writers hold the store's lock; numbers only grow.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.strategy import Assignment
from rocketpy.broker_core.storage.checked_json import COMPACT, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import GENERATIONS

VERSION = 1
_PUBLISHED_AT_ONCE = 100  # a rename over a file that is there takes up to a millisecond
_FILE = CheckedJson(
    key="content",
    form=COMPACT,
    remedy="remove it, if need be: the members of the group, or the rebalance job, make the "
    "next one",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One assignment of a group."""

    number: int  # 1 and up
    strategy: str
    basis: str  # digest of the members and queues that it was made of
    made_ms: int
    made_by: str
    reason: str
    queues: Assignment = field(hash=False)

    def of(self, member: str) -> tuple[MessageQueue, ...]:
        """Return the queues of a member."""
        return self.queues.get(member, ())

    def owners(self) -> dict[MessageQueue, str]:
        """Return the member that each queue belongs to."""
        return {queue: member for member, share in self.queues.items() for queue in share}


def read_generation(root: Path, group: str) -> Generation | None:
    """Return the newest generation of a group; None if there is none yet.

    Raises:
        CorruptStoreError: the file is damaged.
    """
    return _FILE.read(generation_path(root, group), generation_of)


def write_generation(root: Path, group: str, generation: Generation, disk: Disk) -> None:
    """Make a generation the newest, durably. Call while holding the store's lock."""
    path = generation_path(root, group)
    disk.make_folder(path.parent)
    disk.replace(path, encode_generation(generation))


def publish_generations(
    root: Path,
    made: Mapping[str, tuple[int, bytes]],
    disk: Disk,
    locked: Callable[[], AbstractContextManager[None]],
) -> set[str]:
    """Make many generations the newest, durably; return the groups whose newest is another now.

    `made` has for each group the number that its generation follows (0: none), and its bytes. All
    are written first; the store's lock is held to give them their names, a hundred at a time.
    """
    disk.make_folder(root / GENERATIONS)
    token = uuid.uuid4().hex
    staged = {
        group: disk.stage(generation_path(root, group), data, token)
        for group, (_, data) in made.items()
    }
    disk.sync_many(staged.values())
    changed = set[str]()
    groups = list(staged)
    for start in range(0, len(groups), _PUBLISHED_AT_ONCE):
        with locked():
            for group in groups[start : start + _PUBLISHED_AT_ONCE]:
                newest = read_generation(root, group)
                if (newest.number if newest else 0) == made[group][0]:
                    staged[group].replace(generation_path(root, group))
                else:
                    staged[group].unlink()
                    changed.add(group)
    disk.sync_folder(root / GENERATIONS)
    return changed


def generation_path(root: Path, group: str) -> Path:
    """Return the file of a group."""
    return root / GENERATIONS / f"{group}.json"


def encode_generation(generation: Generation) -> bytes:
    """Return the bytes of the file."""
    return _FILE.encode(generation_content(generation))


def decode_generation(data: bytes) -> Generation:
    """Return the generation that the bytes of a file have, as encode_generation() made them."""
    return generation_of(json.loads(data)["content"])


def generation_content(generation: Generation) -> dict[str, Any]:
    """Return a generation as JSON has it."""
    return {
        "version": VERSION,
        "number": generation.number,
        "strategy": generation.strategy,
        "basis": generation.basis,
        "madeMs": generation.made_ms,
        "madeBy": generation.made_by,
        "reason": generation.reason,
        "members": {
            member: [list(queue) for queue in share] for member, share in generation.queues.items()
        },
    }


def generation_of(content: dict[str, Any]) -> Generation:
    """Return the generation that JSON has."""
    return Generation(
        number=content["number"],
        strategy=content["strategy"],
        basis=content["basis"],
        made_ms=content["madeMs"],
        made_by=content["madeBy"],
        reason=content["reason"],
        queues={
            member: tuple(MessageQueue(*queue) for queue in share)
            for member, share in content["members"].items()
        },
    )
