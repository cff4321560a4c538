"""How far each broadcasting member has read: `rocketpy/broadcast/<group>/<member>.json`.

Every member reads all messages, so the offsets are its own; Apache's clients keep them on the
client's disk. Writers hold the store's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.storage.checked_json import COMPACT, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import BROADCAST

VERSION = 1
_FILE = CheckedJson(
    key="content",
    form=COMPACT,
    remedy="remove it, if need be: the member then begins as a new one",
)


def read_broadcast_offsets(root: Path, group: str, member: str) -> dict[MessageQueue, int]:
    """Return the next offset to read of each queue that a member committed.

    Raises:
        CorruptStoreError: the file is damaged.
    """
    return _FILE.read(_path(root, group, member), _offsets) or {}


def write_broadcast_offsets(
    root: Path, who: tuple[str, str], offsets: Mapping[MessageQueue, int], disk: Disk
) -> None:
    """Replace the offsets of a member of a group durably. Call while holding the store's lock."""
    path = _path(root, *who)
    disk.make_folder(path.parent)
    content = {
        "version": VERSION,
        "offsets": [[*queue, offsets[queue]] for queue in sorted(offsets)],
    }
    _FILE.write(path, content, disk)


def _offsets(content: Mapping[str, Any]) -> dict[MessageQueue, int]:
    return {MessageQueue(topic, broker, id_): at for topic, broker, id_, at in content["offsets"]}


def _path(root: Path, group: str, member: str) -> Path:
    return root / BROADCAST / group / f"{quote(member, safe='')}.json"
