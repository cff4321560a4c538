"""Leases: what only one may do at a time, in whatever process, and how another takes over.

`rocketpy/leases/<what>` says who does it and until when. The owner renews it while it works; when
it dies, the time runs out and the next one takes over, with the next epoch. All of that happens
under the store's lock, by a clock that is handed in. An owner that was silent for too long learns
from `require` that it is not the owner any more. Where the clocks of two machines differ, the next
one comes early or late; `require`, under the lock, still keeps both from doing the same.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rocketpy.broker_core.errors import (
    CorruptStoreError,
    LeaseHeldError,
    LeaseLostError,
    StoreClosedError,
    StoreError,
)
from rocketpy.broker_core.storage.layout import LEASES
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

DEFAULT_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The content of the file."""

    owner: str
    kind: str  # what the owner is: service, job
    epoch: int  # grows with each new owner
    expires_ms: int


def new_owner() -> str:
    """Return a name that no other owner has."""
    return f"{platform.node()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@dataclass(slots=True)
class Lease:
    """One's claim to do `what` in a store. Threads may share it."""

    store: MessageStore
    what: str
    kind: str
    duration_ms: int = DEFAULT_MS
    owner: str = field(default_factory=new_owner)
    _epoch: int = -1  # of our ownership; -1 while there is none

    def acquire(self) -> None:
        """Become the owner.

        Raises:
            LeaseHeldError: another one is the owner, and its time is not over.
        """
        with self.store.locked():
            found, now_ms = self.current(), self.store.clock.now_ms()
            if found is not None and found.owner != self.owner and now_ms < found.expires_ms:
                left_ms = found.expires_ms - now_ms
                raise LeaseHeldError(self.store.root, self.what, found.owner, found.kind, left_ms)
            self._epoch = found.epoch + 1 if found is not None else 0
            self._write(now_ms + self.duration_ms)

    def require(self) -> None:
        """Make sure of being the owner still. Call while holding the store's lock.

        Raises:
            LeaseLostError: another has taken over.
        """
        found = self.current()
        if found is None or (found.owner, found.epoch) != (self.owner, self._epoch):
            owner = found.owner if found is not None else "nobody"
            raise LeaseLostError(self.store.root, self.what, owner)

    def renew(self) -> None:
        """Stay the owner for another while, also if the time was over and nobody took it."""
        with self.store.locked():
            self.require()
            self._write(self.store.clock.now_ms() + self.duration_ms)

    def release(self) -> None:
        """Let the next one begin at once; does nothing for one that is not the owner."""
        with self.store.locked():
            try:
                self.require()
            except LeaseLostError:
                return
            self._write(0)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Own it for a while, renewed by a thread of its own."""
        self.acquire()
        stop = threading.Event()
        keeper = threading.Thread(
            target=self._keep, args=(stop,), name=f"rocketpy-{self.what}-lease", daemon=True
        )
        keeper.start()
        try:
            yield
        finally:
            stop.set()
            keeper.join()
            self.release()

    def _keep(self, stop: threading.Event) -> None:
        while not stop.wait(self.duration_ms / 3000):
            try:
                self.renew()
            except (LeaseLostError, StoreClosedError):
                return  # the owner meets it at its next step
            except (StoreError, OSError) as cause:
                log.warning("the lease of %s was not renewed, trying again: %s", self.what, cause)

    def current(self) -> LeaseRecord | None:
        """Return what the file says; None if there is none."""
        try:
            return LeaseRecord(**json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as cause:
            reason = (
                f"the lease cannot be read ({cause}); if nobody is doing {self.what}, remove it"
            )
            raise CorruptStoreError(self._path, 0, reason) from cause

    @property
    def _path(self) -> Path:
        return self.store.root / LEASES / self.what

    def _write(self, expires_ms: int) -> None:
        record = LeaseRecord(
            owner=self.owner, kind=self.kind, epoch=self._epoch, expires_ms=expires_ms
        )
        # A lease of a machine that lost its power is over: it need not be durable.
        self._path.parent.mkdir(exist_ok=True)
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(record)))
        temporary.replace(self._path)
