"""Who may write: the store's lock between processes and threads, and who has the store open.

`lock` is taken as Java's FileChannel.lock takes it, a POSIX record lock, so that our writers and
Apache's broker exclude each other. Such a lock does not exclude threads of one process, and is lost
when *any* descriptor of the file is closed in the process: hence one guard per process and path,
a thread lock beside it, and a descriptor that is closed only when nobody uses the guard any more.

Threads of one process can hand the lock to each other faster than another process can take it. So
a process that waits for long locks the second byte of the file, which Apache's broker does not use.
The holder of the lock looks there now and then. If a process waits, it leaves the lock free for a
moment.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rocketpy.broker_core.errors import StoreClosedError, StoreLockedError
from rocketpy.broker_core.storage.layout import LOCK, LOCK_TEXT, OPENERS

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.00005, 0.002
_LOOK_EVERY_S, _LEFT_FREE_S = 0.005, 0.004  # the latter is longer than a waiter sleeps
_LINE = 1  # the byte that a process locks once it has waited for long
_FLOCK = struct.Struct("hhqqi4x")  # struct flock on 64-bit Linux

_guards: dict[tuple[int, int], StoreLock] = {}
_guards_lock = threading.Lock()


class Hold:
    """One stay under the lock. It is made before the lock is taken: so it can always be given back.

    The outermost one of a thread has the lock; those that are nested in it change nothing.
    """

    __slots__ = ("__weakref__",)


class StoreLock:
    """The one guard of a store in this process: get it from lock_of().

    Ctrl-C may come between any two steps of the main thread. Hence release() asks the locks
    themselves who has them, may be called twice, and its callers do call it twice: an interrupt
    inside the first call is made good by the second.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Made here if it is missing, never replaced: a lock on another file excludes nobody.
        self._make_thread_lock()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not os.fstat(self._fd).st_size:
            os.pwrite(self._fd, LOCK_TEXT, 0)
        self._identity = _identity(path)
        self.users = 0  # changed under _guards_lock
        self._look_at_s = 0.0
        self._is_in_line = False
        self._outermost: Callable[[], Hold | None] = _nobody  # by a weak reference

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock; a thread that has it may take it again.

        Raises:
            StoreLockedError: another process, or a thread of this one, kept it for longer than the
                time-out.
        """
        hold = Hold()
        try:
            try:
                self.acquire(hold, timeout_s)
                yield
            finally:
                self.release(hold)
        finally:
            self.release(hold)

    def acquire(self, hold: Hold, timeout_s: float) -> None:
        """Take the lock as held() does, for a hot path.

        Give it back by calling release() twice, the second time if is_mine() still says so.
        """
        deadline = time.monotonic() + timeout_s
        if not self.is_mine():
            if not self._thread_lock.acquire(timeout=timeout_s):
                raise StoreLockedError(self._path.parent, os.getpid(), timeout_s)
        elif self._outermost() is not None:
            return
        if self._fd < 0:  # closed by another thread, while this one waited
            self._thread_lock.release()
            raise StoreClosedError(self._path.parent)
        self._outermost = weakref.ref(hold, self._release_abandoned)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except (BlockingIOError, PermissionError):
            self._wait(deadline, timeout_s)

    def release(self, hold: Hold) -> None:
        """Give the lock back; do nothing if that was done."""
        if not self.is_mine():
            return
        outermost = self._outermost()
        if outermost is hold or outermost is None:
            if self._is_in_line:
                self._leave_line()
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1)
            if time.monotonic() >= self._look_at_s:
                self._look_at_s = time.monotonic() + _LOOK_EVERY_S
                if self._holder_of(_LINE) is not None:
                    time.sleep(_LEFT_FREE_S)
            self._outermost = _nobody
            self._thread_lock.release()
            if not self.users:
                self._close_unused()

    def leave(self) -> None:
        """Cease to use the guard. Its last user closes it, as soon as the lock is free."""
        with _guards_lock:
            self.users -= 1
        self._close_unused()

    def _close_unused(self) -> None:
        """Close the file if nobody uses the guard: a process may open any number of stores.

        If the lock is held, its holder does this when giving it back.
        """
        if self.is_mine() or not self._thread_lock.acquire(blocking=False):
            return
        try:
            with _guards_lock:
                if not self.users and self._fd >= 0:
                    del _guards[self._identity]
                    fd, self._fd = self._fd, -1
                    os.close(fd)
        finally:
            self._thread_lock.release()

    def _release_abandoned(self, gone: weakref.ref[Hold]) -> None:
        """Give back the lock of a frame that an interrupt ended before it called release()."""
        if self._outermost is gone and self.is_mine():
            self.release(Hold())

    def _make_thread_lock(self) -> None:
        self._thread_lock = threading.RLock()  # taken once, whatever the number of nested holds
        # Whether this thread has it: a method of the lock, as each send asks three times.
        self.is_mine: Callable[[], bool] = self._thread_lock._is_owned  # type: ignore[attr-defined]

    def _wait(self, deadline: float, timeout_s: float) -> None:
        wait_s = _FIRST_WAIT_S
        while not self._take_byte(0):
            if time.monotonic() >= deadline:
                raise StoreLockedError(self._path.parent, self.holder(), timeout_s)
            if wait_s == _LONGEST_WAIT_S and not self._is_in_line:
                self._is_in_line = True  # before it is so: an interrupt may come between
                self._is_in_line = self._take_byte(_LINE)
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        if self._is_in_line:
            self._leave_line()

    def _take_byte(self, at: int) -> bool:
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _leave_line(self) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _LINE)
        self._is_in_line = False

    def holder(self) -> int | None:
        """Return the pid of another process that holds the lock now, if the system tells."""
        return self._holder_of(0)

    def _holder_of(self, at: int) -> int | None:
        try:
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0)
            kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_GETLK, asked))
        except (OSError, struct.error):
            return None
        return None if kind == fcntl.F_UNLCK else pid

    def text(self) -> bytes:
        """Return what the lock file holds."""
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def forget_after_fork(self) -> None:
        """Start anew in a child process, which inherits neither the lock nor its owner."""
        self._make_thread_lock()
        self._outermost = _nobody
        self._is_in_line = False


def _nobody() -> None:
    """The lock is free, or its holder was interrupted and did not give it back."""


def lock_of(root: Path) -> StoreLock:
    """Return this process's guard of a store, for one more user: call leave() when it is not used.

    Makes the lock file if it is missing.
    """
    path = root / LOCK
    with _guards_lock:
        guard = _guards.get(_identity(path)) if path.exists() else None
        if guard is None:
            guard = StoreLock(path)
            _guards[_identity(path)] = guard
        guard.users += 1
        return guard


@contextmanager
def locked(root: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock of a store that need not be open; it may nest.

    Raises:
        StoreLockedError: another process, or a thread of this one, kept it for longer than the
            time-out.
    """
    guard = lock_of(root)
    try:
        with guard.held(timeout_s):
            yield
    finally:
        guard.leave()


def lock_text(root: Path) -> bytes | None:
    """Return what a store's lock file holds; None if it is missing: it is not made.

    The guard of this process, if there is one, reads it: to open and close the file would drop the
    lock. Without one there is no lock to drop, and none is made meanwhile.
    """
    path = root / LOCK
    with _guards_lock:
        try:
            guard = _guards.get(_identity(path))
            return guard.text() if guard else path.read_bytes()
        except FileNotFoundError:
            return None


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


class Openers:
    """Counts who has the store open for writing, by a shared lock that a dead process loses."""

    def __init__(self, root: Path) -> None:
        path = root / OPENERS
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        _all_openers.add(self)

    def join(self) -> bool:
        """Become one of them; return whether there was no other. Call while holding the lock."""
        alone = self._try_alone()
        fcntl.flock(self._fd, fcntl.LOCK_SH)
        return alone

    def leave(self) -> bool:
        """Cease to be one of them; return whether it was the last. Call while holding the lock.

        Leaving twice is fine; the second time it is never the last.
        """
        if self._fd < 0:
            return False
        alone = self._try_alone()
        fcntl.flock(self._fd, fcntl.LOCK_UN)  # a forked child may hold a copy of the descriptor
        self.forget()
        return alone

    def forget(self) -> None:
        """Let go of the descriptor; in a forked child this changes nothing for the parent."""
        os.close(self._fd)
        self._fd = -1

    @property
    def is_in(self) -> bool:
        """Whether it has not left."""
        return self._fd >= 0

    def _try_alone(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_forks = 0


def forks() -> int:
    """Return how many forks lie between this process and the one that imported this module.

    What was opened at another count was opened by a parent. Asking for the pid is a system call.
    """
    return _forks


def _after_fork() -> None:
    global _guards_lock, _forks
    _forks += 1
    _guards_lock = threading.Lock()  # another thread of the parent may have held it
    for openers in list(_all_openers):
        if openers.is_in:
            openers.forget()
    for guard in _guards.values():
        guard.forget_after_fork()


_all_openers: weakref.WeakSet[Openers] = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork)
