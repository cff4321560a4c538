"""Waiting messages of a store: delivering those that are due, recalling one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.delay.service import DeliveryService
from rocketpy.broker_core.delay.timing import RecallHandle, recalling
from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.embedded.sending import Receipt, Sending
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.metadata.names import TIMER_TOPIC


@guarded
class Delaying(Sending):
    """The side of a store that brings waiting messages to their topics."""

    def deliver_due(self) -> int:
        """Deliver what is due now, durably, each message once; return how many.

        Raises:
            LeaseHeldError: a service or a job delivers already.
            CorruptStoreError: a level has damaged records; the others were delivered.
        """
        with self._delivery("deliver") as deliverer:
            count = deliverer.deliver_due(self._store.clock.now_ms())
            if not deliverer.is_published:
                deliverer.publish()
        for error in deliverer.failed.values():
            raise error
        return count

    def hand_over(self) -> None:
        """Leave the store so that Apache's broker, started on it, delivers nothing again.

        Messages with a delivery time that wait after delivered ones are stored anew. Levels need
        no more than what deliver_due() does.

        Raises:
            LeaseHeldError: a service or a job delivers: stop it first.
        """
        with self._delivery("hand over") as deliverer:
            deliverer.hand_over()

    @contextmanager
    def _delivery(self, action: str) -> Iterator[Deliverer]:
        self._require_writable(action)
        lease = Lease(self._store, LEASE, "service")
        with lease.kept():
            yield Deliverer(self._store, lease)

    def delivering(self, *, interval_s: float = 0.02) -> DeliveryService:
        """Return a service that delivers what is due in the background: use it in `with`."""
        self._require_writable("deliver")
        return DeliveryService(self._store, interval_s=interval_s)

    def recall(self, what: Receipt | str) -> None:
        """Take back a message that waits for its time, by its receipt or recall handle.

        Raises:
            MessageRefusedError: it is not a message with a delivery time, or it is due already.
        """
        self._require_writable("recall")
        handle = what.recall_handle if isinstance(what, Receipt) else what
        if not isinstance(handle, str):
            reason = "only messages sent with deliver_at can be recalled, by receipt or handle"
            raise MessageRefusedError(f"{what!r:.80}", reason)
        now_ms = self._store.clock.now_ms()
        parsed = RecallHandle.parse(handle)
        self._make_system_topic(TIMER_TOPIC)
        recall = recalling(parsed, self.config, now_ms=now_ms)
        self._store.append_many([admitted(recall, self.config)])
