"""One broker of a test's cluster, from its first start to its last stop."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.local.disk import LocalDisk
from rocketpy.broker_core.local.faults import Faults
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.metrics.measured import Measured, metrics_of_broker

if TYPE_CHECKING:
    from rocketpy.broker_core.metrics.serving import MetricsServer


class LocalMember:
    """A broker: its name, where it is, and what can go wrong with it."""

    def __init__(
        self,
        settings: BrokerSettings,
        topics: Sequence[TopicConfig],
        *,
        clock: Clock | None,
        lasts: bool,
    ) -> None:
        self._settings, self._topics, self._clock = settings, topics, clock
        self._disk = LocalDisk(syncs=lasts)
        self._broker: Broker | None = None
        self._metrics: MetricsServer | None = None
        self.name = settings.broker_name
        self.store_path = Path(settings.store_path_root_dir)
        self.faults = Faults(self._disk)

    def __repr__(self) -> str:
        state = f"at {self.address}" if self.is_running else "stopped"
        return f"<broker {self.name} {state}, store {self.store_path}>"

    @property
    def address(self) -> str:
        """Where clients reach it, `host:port`; known from its first start on."""
        return f"{self._settings.broker_ip}:{self._settings.listen_port}"

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._broker is not None

    @property
    def metrics_address(self) -> str | None:
        """What Prometheus scrapes, if `metricsExporterType` is PROM and it runs."""
        return None if self._metrics is None else self._metrics.address

    # --- in the loop ------------------------------------------------------------------------------

    async def start(self, namesrv_addr: str) -> None:
        """Serve, at the port of the time before; do nothing if it does."""
        if self._broker is not None:
            return
        settings = replace(self._settings, namesrv_addr=namesrv_addr)
        broker = Broker(settings, clock=self._clock, disk=self._disk)
        try:
            metrics = metrics_of_broker(broker)
            await Measured(broker, metrics).start()
        except BaseException:
            broker.pool.shutdown(wait=False)
            raise
        self._settings = replace(self._settings, listen_port=broker.host.port)
        self._broker, self._metrics = broker, metrics
        self.faults.attach(broker.service)
        await self._make_topics(broker)

    async def stop(self) -> None:
        """Stop in order; do nothing if it is stopped."""
        broker, self._broker = self._broker, None
        if broker is not None:
            self.faults.clear()
            self._stop_metrics()
            await broker.stop()

    async def kill(self) -> None:
        """Stop as a crash would; do nothing if it is stopped. The next start recovers the store."""
        broker, self._broker = self._broker, None
        if broker is None:
            return
        self._disk.is_dead = True
        self.faults.clear()
        self._stop_metrics()
        try:
            await broker.abandon()
        finally:
            self._disk.is_dead = False

    async def renew(self, namesrv_addr: str) -> None:
        """Forget all messages, topics, groups and offsets; clients stay connected."""
        self.faults.clear()
        if self._broker is None:
            self._clear()
            await self.start(namesrv_addr)
        else:
            await self._broker.renew_store(self._clear)
            self.faults.attach(self._broker.service)  # some may have been set meanwhile
            await self._make_topics(self._broker)

    def _stop_metrics(self) -> None:
        metrics, self._metrics = self._metrics, None
        if metrics is not None:
            metrics.stop()

    async def _make_topics(self, broker: Broker) -> None:
        if self._topics:
            await broker.in_pool(self._put_topics, broker)
            await broker.registration.now()

    def _put_topics(self, broker: Broker) -> None:
        with broker.store.locked():
            known = broker.store.topics.all()
            broker.store.put_topics([each for each in self._topics if each.name not in known])

    def _clear(self) -> None:
        # What was the store is renamed first: others that have it open do not see it half gone.
        gone = self.store_path.with_name(f".{self.store_path.name}.gone")
        shutil.rmtree(gone, ignore_errors=True)
        if self.store_path.exists():
            self.store_path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
