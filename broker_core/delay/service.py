"""A thread that delivers what is due, as long as its owner lives."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.errors import (
    LeaseHeldError,
    LeaseLostError,
    RocketPyError,
    StoreClosedError,
    StoreLockedError,
)
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

_PUBLISH_S = 1.0  # how often Apache's files are brought up to date


class DeliveryService:
    """Looks every `interval_s` for what is due. Starts on entry, stops on exit.

    While another owner delivers it waits for its turn. An owner that lost its lease stops, and
    `error` says so; `check` raises it.
    """

    def __init__(self, store: MessageStore, *, interval_s: float = 0.02) -> None:
        self._store, self._interval_s = store, interval_s
        self._lease = Lease(store, LEASE, "service")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rocketpy-delivery", daemon=True)
        self.delivered = 0
        self.error: RocketPyError | None = None

    def __enter__(self) -> DeliveryService:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it: what is being delivered is finished, Apache's files are brought up to date."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def check(self) -> None:
        """Raise what ended the service, if it has not been stopped."""
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._lease.kept():
                    self._deliver()
            except LeaseHeldError as cause:
                log.info("waiting: %s", cause)
                self._stop.wait(min(max(cause.left_ms / 1000, self._interval_s), 1.0))
            except (LeaseLostError, StoreClosedError) as cause:
                log.error("delivery stops: %s", cause)
                self.error = cause
                return
            except StoreLockedError as cause:  # Apache's broker has the store
                log.warning("delivery waits: %s", cause)
                self._stop.wait(1.0)
            except Exception:
                log.exception("%s: delivery failed, trying again", self._store.root)
                self._stop.wait(1.0)

    def _deliver(self) -> None:
        deliverer = Deliverer(self._store, self._lease)
        published_s = time.monotonic()
        try:
            while not self._stop.wait(self._interval_s):
                now_ms = self._store.clock.now_ms()
                if deliverer.may_be_due(now_ms):
                    self.delivered += deliverer.deliver_due(now_ms)
                is_time = time.monotonic() - published_s >= _PUBLISH_S
                if not deliverer.is_published and is_time:
                    deliverer.publish()
                    published_s = time.monotonic()
        finally:
            if not deliverer.is_published:
                deliverer.publish()
