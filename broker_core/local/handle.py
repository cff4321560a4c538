"""The broker for anybody's tests: a real one, in a thread, on free ports of this machine."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.local.cluster import LocalCluster
from rocketpy.broker_core.local.faults import Faults
from rocketpy.broker_core.local.member import LocalMember
from rocketpy.broker_core.net.loop_thread import LoopThread

if TYPE_CHECKING:
    from rocketpy.broker_core.embedded import Store

_START_S, _STOP_S = 60.0, 30.0
_DEFAULT_QUEUES = 4
_FLUSHES = {"async": "ASYNC_FLUSH", "sync": "SYNC_FLUSH"}
# Before the pools of threads end, with which stores are closed; atexit comes after them.
_at_exit: Callable[[Callable[[], Any]], Any] = getattr(
    threading, "_register_atexit", atexit.register
)
_running: weakref.WeakSet[LocalBroker] = weakref.WeakSet()


class LocalBroker:
    """A name server and brokers in a thread of this process, until it is closed.

    Any thread may use it. A forked child may connect to it, and can do nothing else with it.
    """

    def __init__(self, cluster: LocalCluster, folder: Path, *, is_temporary: bool) -> None:
        self._cluster, self._folder, self._is_temporary = cluster, folder, is_temporary
        self._is_closed = False
        self._thread = LoopThread("rocketpy-local-broker")
        try:
            self._thread.run(cluster.start(), timeout_s=_START_S)
        except BaseException:
            self._end()
            raise
        _running.add(self)

    def __repr__(self) -> str:
        return f"<local broker, name server {self.namesrv_addr}, {self.brokers}>"

    @property
    def namesrv_addr(self) -> str:
        """Where the name server is, `host:port`: what clients are told."""
        return self._cluster.namesrv_addr

    @property
    def brokers(self) -> tuple[LocalMember, ...]:
        """The brokers: each has `name`, `address`, `store_path`, `is_running` and `faults`;
        with `metricsExporterType=PROM` also `metrics_address`.
        """
        return tuple(self._cluster.members)

    @property
    def address(self) -> str:
        """Where the first broker is, `host:port`."""
        return self.brokers[0].address

    @property
    def store_path(self) -> Path:
        """The folder of the first broker's store."""
        return self.brokers[0].store_path

    @property
    def faults(self) -> Faults:
        """What can go wrong with the first broker."""
        return self.brokers[0].faults

    def store(self, index: int = 0) -> Store:
        """Open a broker's store by its path, as any other program may: close it, or use `with`."""
        from rocketpy.broker_core.embedded import open

        return open(self.brokers[index].store_path)

    def reset(self) -> None:
        """Make all as it was at the start: no messages, groups, offsets, locks, faults.

        Clients stay connected; pulls that wait are answered. Brokers that were stopped run again.
        Close what store() opened before.
        """
        self._thread.run(self._cluster.renew(), timeout_s=_START_S)

    def stop_broker(self, index: int = 0) -> None:
        """Stop a broker in order; the others and the name server go on."""
        self._thread.run(self.brokers[index].stop(), timeout_s=_STOP_S)

    def kill_broker(self, index: int = 0) -> None:
        """Stop a broker as a crash would: nothing is answered, saved or closed in order."""
        self._thread.run(self.brokers[index].kill(), timeout_s=_STOP_S)

    def start_broker(self, index: int = 0) -> None:
        """Start a broker again, on the same port and folder; do nothing if it runs."""
        member = self.brokers[index]
        self._thread.run(member.start(self.namesrv_addr), timeout_s=_START_S)

    def close(self) -> None:
        """Stop all, and remove a temporary folder. Closing twice is fine, in a forked child too."""
        if self._is_closed or not self._thread.is_own:
            return
        self._is_closed = True
        _running.discard(self)
        try:
            self._thread.run(self._cluster.stop(), timeout_s=_STOP_S)
        finally:
            self._end()

    def _end(self) -> None:
        self._thread.stop()
        if self._is_temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> LocalBroker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def local_broker(
    path: str | Path | None = None,
    *,
    brokers: int = 1,
    settings: Mapping[str, str] | None = None,
    topics: Iterable[str] | Mapping[str, int] = (),
    flush: Literal["async", "sync"] = "async",
    tls: bool = False,
    clock: Clock | None = None,
) -> LocalBroker:
    """Start a name server and brokers for a test; they serve on return. Use it in `with`.

    They listen on free ports of 127.0.0.1. Stores are in a temporary folder, which goes at the end,
    unless `path` gives another. `settings` are those of `broker.conf`, by RocketMQ's names;
    `topics` are names, with 4 queues each, or names with their number of queues. With `tls`
    clients may use TLS or plain text, as they like.

    Raises:
        SettingError: a setting is not known, or cannot be.
        StoreLockedError: another broker has the store; and all that opening a store raises.
    """
    if not isinstance(topics, Mapping):
        topics = dict.fromkeys(topics, _DEFAULT_QUEUES)
    wanted = {"flushDiskType": _FLUSHES[flush]}
    if tls:
        wanted["tls.test.mode.enable"] = "true"
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-broker-")) if path is None else Path(path)
    store = folder / "store" if path is None else folder
    try:
        cluster = LocalCluster(
            store,
            brokers=brokers,
            settings={**wanted, **(settings or {})},
            topics=topics,
            clock=clock,
            lasts=path is not None,
        )
        return LocalBroker(cluster, folder, is_temporary=path is None)
    except BaseException:
        if path is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _close_all() -> None:
    for broker in list(_running):
        with contextlib.suppress(Exception):
            broker.close()


_at_exit(_close_all)
