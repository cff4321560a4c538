"""`rocketpy/server`: at most one broker serves a store.

Any number of processes may open a store, but a broker keeps offsets, locks of queues and members of
groups in its memory: two of them would not know of each other. The lock is the kernel's, on the
open file, so that one who dies loses it at once; the file has the pid of its owner, for errors.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from rocketpy.broker_core.errors import StoreLockedError
from rocketpy.broker_core.storage.layout import OURS, SERVER

_LONGEST_PID = 20


class ServerLock:
    """The right to serve a store, from its making on until leave().

    Raises:
        StoreLockedError: another broker has it; says which process.
    """

    def __init__(self, root: Path) -> None:
        (root / OURS).mkdir(parents=True, exist_ok=True)
        self._fd = os.open(root / SERVER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            pid = os.pread(self._fd, _LONGEST_PID, 0)
            os.close(self._fd)
            raise StoreLockedError(root, int(pid) if pid.isdigit() else None, 0) from cause
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def leave(self) -> None:
        """Let another broker serve the store; leaving twice is fine."""
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # a forked child may hold a copy of the descriptor
            os.close(self._fd)
            self._fd = -1
