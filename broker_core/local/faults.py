"""All that a test can let go wrong at one broker: its requests, and its disk."""

from __future__ import annotations

from rocketpy.broker_core.broker.faults import Fault, RequestFaults
from rocketpy.broker_core.local.disk import LocalDisk


class _DiskFull(Fault):
    """No room on the disk."""

    def __init__(self, disk: LocalDisk) -> None:
        super().__init__("fill_disk", lambda _: self._free())
        self._disk = disk
        disk.refused, disk.is_full = 0, True

    def _free(self) -> None:
        self.happened, self._disk.is_full = self._disk.refused, False


class _FlushesHeld(Fault):
    """Syncs of the log that wait."""

    def __init__(self, disk: LocalDisk) -> None:
        super().__init__("hold_flushes", lambda _: self._release())
        self._disk = disk
        disk.held_back = 0
        disk.hold_syncs()

    def _release(self) -> None:
        self.happened = self._disk.held_back
        self._disk.release_syncs()


class Faults(RequestFaults):
    """The faults of one broker. Any thread may set them."""

    def __init__(self, disk: LocalDisk) -> None:
        super().__init__()
        self._disk = disk
        self._of_disk: list[Fault] = []

    def fill_disk(self) -> Fault:
        """Let there be no room for messages until it ends: sends get SERVICE_NOT_AVAILABLE.

        `happened` counts the writes that failed, once it has ended.
        """
        return self._note(_DiskFull(self._disk))

    def hold_flushes(self) -> Fault:
        """Let syncs of the log wait until it ends.

        Under sync flush sends get FLUSH_DISK_TIMEOUT after `syncFlushTimeout`. `happened` counts
        the syncs that waited, once it has ended.
        """
        return self._note(_FlushesHeld(self._disk))

    def clear(self) -> None:
        """End all faults."""
        super().clear()
        while self._of_disk:
            self._of_disk.pop().end()

    def _note(self, fault: Fault) -> Fault:
        self._of_disk.append(fault)
        return fault
