"""Where a broadcasting consumer reads on: a file of its own, as Apache's clients keep it.

`offsets.json` is replaced as a whole; after a crash it is the old one or the new one. It is
written in the form that Apache's LocalFileOffsetStore reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.offsets import ResetOffsets
from rocketpy.broker_core.protocol.errors import BodyError

_NAME = "offsets.json"


def default_path(client_id: str, group: str) -> Path:
    """Return where Apache's clients keep the offsets of a group."""
    return Path.home() / ".rocketmq_offsets" / client_id / group / _NAME


class LocalOffsets:
    """The offsets of one group of one client, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[MessageQueue, int]:
        """Return where to read on; nothing, if there is no file.

        Raises:
            MetadataError: the file is damaged.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        try:
            return dict(ResetOffsets.decode(data).offset_table)
        except BodyError as cause:
            raise MetadataError(self.path, f"{cause}; mend or remove it") from cause

    def save(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Replace all offsets; durable on return."""
        from rocketpy.broker_core.storage.disk import Disk  # brings numpy: who broadcasts needs it

        self.path.parent.mkdir(parents=True, exist_ok=True)
        Disk().replace(self.path, ResetOffsets(offset_table=dict(offsets)).encode())
