"""How far each delay level has been delivered: `config/delayOffset.json`.

Levels count from 1; level n is queue n - 1 of SCHEDULE_TOPIC_XXXX. An offset is the next one to
look at. Reads see what any process saved last. `put` takes no lock: call it while holding the
store lock. `dataVersion` is kept as it is: Apache's broker moves it only once in 200 updates.
"""

from __future__ import annotations

from operator import index
from typing import ClassVar

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata.config_file import ConfigFile
from rocketpy.broker_core.metadata.documents import Bean, Document, data_version, with_members

_TABLE = "offsetTable"


class DelayOffsets:
    """The next offset in the schedule topic by delay level."""

    FILE_NAME: ClassVar[str] = "delayOffset.json"

    def __init__(self, config_file: ConfigFile) -> None:
        self._file = config_file

    def get(self, level: int) -> int:
        """Return the level's next offset, 0 if it never had one."""
        return self.all().get(level, 0)

    def all(self) -> dict[int, int]:
        """Return the next offset of every level that has one."""
        return self._levels(self._file.load())

    def put(self, level: int, queue_offset: int) -> None:
        """Set the level's next offset.

        Call while holding the store lock. Durable on return.
        """
        self.put_all({level: queue_offset})

    def put_all(self, offsets: dict[int, int]) -> None:
        """Set the next offset of several levels in one write.

        Call while holding the store lock. Durable on return.
        """
        checked = {index(level): index(at) for level, at in offsets.items()}
        for level, at in checked.items():
            if level < 1 or at < 0:
                raise ValueError(f"offset {at} of delay level {level}: levels count from 1")

        def edit(document: Document) -> Document:
            levels = self._levels(document)
            changed = dict(sorted((levels | checked).items()))
            if changed == levels:
                return document
            version = data_version(Bean(document, self._file.path, "the file"))
            return with_members(document, {"dataVersion": version, _TABLE: changed})

        self._file.change(edit)

    def _levels(self, document: Document) -> dict[int, int]:
        """The table; in a file made by others the levels may be quoted."""
        table = Bean(document, self._file.path, "the file").bean(_TABLE).members
        try:
            return {int(level): index(at) for level, at in table.items()}
        except (TypeError, ValueError) as error:
            reason = f"'{_TABLE}' does not map delay levels to offsets ({error}); correct it"
            raise MetadataError(self._file.path, reason) from error
