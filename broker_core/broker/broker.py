"""The broker: a store, what is known of its clients, and the server that they reach.

It is one more process on the folder: jobs, notebooks and other programs open the same store by its
path meanwhile. All state here belongs to the loop's thread, unless a class says otherwise; what may
wait for a disk or for the store's lock runs in the pool.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import orjson

from rocketpy.broker_core.broker.appender import Appender
from rocketpy.broker_core.broker.clients import Clients
from rocketpy.broker_core.broker.configuration import Configuration
from rocketpy.broker_core.broker.durability import Durability
from rocketpy.broker_core.broker.group_offsets import BrokerOffsets
from rocketpy.broker_core.broker.group_settings import BrokerGroups
from rocketpy.broker_core.broker.incoming import Incoming
from rocketpy.broker_core.broker.pulling import Pulling
from rocketpy.broker_core.broker.queue_locks import QueueLocks
from rocketpy.broker_core.broker.registrant import BrokerRegistrant
from rocketpy.broker_core.broker.retries import Retries
from rocketpy.broker_core.broker.services.client_expiry import ClientExpiry
from rocketpy.broker_core.broker.services.offset_saving import OffsetSaving
from rocketpy.broker_core.broker.services.registration import Registration
from rocketpy.broker_core.broker.services.stats_sampling import StatsSampling
from rocketpy.broker_core.broker.services.transaction_checks import TransactionChecks
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.broker.staging import StagedUploads
from rocketpy.broker_core.broker.stats import Stats
from rocketpy.broker_core.broker.subscriptions import Subscriptions
from rocketpy.broker_core.broker.table import HANDLERS
from rocketpy.broker_core.broker.topics import BrokerTopics
from rocketpy.broker_core.broker.waiting_pulls import WaitingPulls
from rocketpy.broker_core.clock import Clock, SystemClock, steady_ms
from rocketpy.broker_core.delay.pending import PendingMessages
from rocketpy.broker_core.delay.service import DeliveryService
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.server import Listening, Server, bind_pair
from rocketpy.broker_core.net.service import Service
from rocketpy.broker_core.net.tls import server_context
from rocketpy.broker_core.property_names import MSG_REGION, TRACE_ON
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.server_lock import ServerLock
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_POOL_THREADS = 8
_RENEWAL_WAIT_S = 5.0  # for requests that are being worked on


class Broker:
    """One broker, started and stopped in a loop. Its parts are there once it is started."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        clock: Clock | None = None,
        config_path: Path | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.settings, self.clock, self.config_path = settings, clock or SystemClock(), config_path
        self._disk = disk
        self.pool = ThreadPoolExecutor(_POOL_THREADS, "rocketpy-broker")
        self.service = Service(self, HANDLERS, self.pool)
        self.stats = Stats(self.clock.now_ms)
        self.started_ms = self.clock.now_ms()
        self.configuration = Configuration(self)
        self.is_stopping = False

    async def start(self) -> None:
        """Listen, open the store, and register: ready on return.

        Raises:
            OSError: the port is taken.
            StoreLockedError: another broker has the store; and all that opening a store raises.
        """
        self.loop = asyncio.get_running_loop()
        settings = self.settings
        sockets = bind_pair(settings.listen_address, settings.listen_port)
        try:
            self.host = settings.advertised(sockets[0].getsockname()[1])
            self._tls = await self.in_pool(server_context, settings.tls)
            self.clients = Clients(steady_ms=lambda: steady_ms(self.clock), notifies=self._notifies)
            self.store = await self.in_pool(self._open_store)
        except BaseException:
            for each in sockets:
                each.close()
            raise
        try:
            await self._make_parts()
        except BaseException:
            for each in sockets:
                each.close()
            await self.in_pool(self._close_store)
            raise
        await self._serve(sockets)
        log.info("%s serves %s at %s", settings.broker_name, self.store.root, self.host)

    async def _make_parts(self) -> None:
        settings = self.settings
        self.id_prefix = self.host.packed().hex().upper().encode()  # of message ids
        own = {MSG_REGION: settings.region_id, TRACE_ON: "true" if settings.trace_on else "false"}
        self.answer_fields = orjson.dumps(own)[1:-1]  # in each answer to a send
        self.topics, self.groups = BrokerTopics(self), BrokerGroups(self)
        self.offsets = BrokerOffsets(self.store)
        self.queue_locks = QueueLocks(settings.rebalance_lock_max_live_time)
        self.subscriptions, self.pulling = Subscriptions(self), Pulling(self)
        self.incoming, self.retries = Incoming(self), Retries(self)
        self.appender, self.durability = Appender(self), Durability(self)
        self.waiting_pulls = WaitingPulls(self)
        self.staging = StagedUploads(self.store)
        self.pending = PendingMessages(self.store)
        self.transactions = TransactionChecks(self)
        await self.in_pool(self._make_system_settings)

    def _make_system_settings(self) -> None:
        self.topics.make_system_topics()
        self.groups.make_system_groups()

    async def _serve(self, sockets: list[Listening]) -> None:
        settings = self.settings
        self.caller = Caller(self.service)
        self._start_services()
        self._server = Server(
            self.service,
            sockets,
            idle_s=settings.server_channel_max_idle_time_seconds,
            tls=self._tls,
            tls_mode=settings.tls.mode,
        )
        self._server.start()
        name_servers = [each for each in settings.namesrv_addr.replace(",", ";").split(";") if each]
        self.registration = Registration(
            BrokerRegistrant(self),
            name_servers,
            self.caller,
            period_ms=settings.register_name_server_period,
        )
        self.topics.when_changed(self.registration.changed)
        await self.registration.start()

    def _start_services(self) -> None:
        """Begin what works on the store beside the requests."""
        self._delivery = DeliveryService(self.store)
        self._delivery.__enter__()
        self._offset_saving, self._client_expiry = OffsetSaving(self), ClientExpiry(self)
        self._sampling = StatsSampling(self)
        self._offset_saving.start()
        self._sampling.start()
        self._client_expiry.start()
        self.transactions.start()

    async def _stop_services(self) -> None:
        await self._client_expiry.stop()
        await self._sampling.stop()
        await self._offset_saving.stop()
        await self.in_pool(self._delivery.stop)

    async def stop(self) -> None:
        """Answer what was asked, save all, and leave the store clean. Stopping twice is fine."""
        if self.is_stopping:
            return
        self.is_stopping = True
        await self.registration.stop()
        self.waiting_pulls.stop()
        await self.transactions.stop()
        await self.appender.drained()
        await self._server.stop()
        self.caller.close()
        try:
            await self._stop_services()
        finally:  # offsets may be left unsaved; the messages are closed in order all the same
            await self.in_pool(self._close_store)
            self.pool.shutdown(wait=False)

    async def abandon(self) -> None:
        """Stop as a crash would: nobody is answered or told. Its disk must take nothing more."""
        self.is_stopping = True
        await self._server.abort()
        await self.registration.abandon()
        self.caller.close()
        stops = (self.transactions.stop, self._stop_services)
        for stop in (*stops, lambda: self.in_pool(self._close_store)):
            try:
                await stop()
            except Exception as cause:
                log.info("%s was abandoned: %s", self.settings.broker_name, cause)
        self.pool.shutdown(wait=False)

    async def renew_store(self, clear: Callable[[], object]) -> None:
        """Begin with an empty store; clients stay connected, and their requests wait meanwhile.

        Pulls on hold are answered. `clear` runs in the pool when no store is open, and has to leave
        an empty place at storePathRootDir.
        """
        with self.service.paused():
            await self._server.answered(_RENEWAL_WAIT_S)
            await self.appender.drained()
            self.waiting_pulls.stop()
            await self.transactions.stop()
            await self._stop_services()
            await self.in_pool(self._close_store)
            await self.in_pool(clear)
            self.store = await self.in_pool(self._open_store)
            await self._make_parts()
            self._start_services()
            self.topics.when_changed(self.registration.changed)
        await self.registration.now()

    async def in_pool(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run what may block in a thread."""
        return await self.loop.run_in_executor(self.pool, work, *arguments)

    def acknowledge(self) -> None:
        """Return when what was stored may be acknowledged. Runs in the pool."""
        if self.settings.is_sync_flush:
            self.store.flush()

    async def ask_client(
        self, connection: Connection, command: RemotingCommand, body: bytes, *, timeout_s: float
    ) -> RemotingCommand | None:
        """Return a client's answer; None if it gives none in time."""
        try:
            return await asyncio.wait_for(connection.request(command, body), timeout_s)
        except (asyncio.TimeoutError, ConnectionResetError) as cause:
            log.warning("%s does not answer %r: %s", connection.peer, command, cause)
            return None

    def _notifies(self, group: str) -> bool:
        known = self.groups.get(group)
        is_wanted = known is None or known.notify_consumer_ids_changed_enabled
        return is_wanted and self.settings.notify_consumer_ids_changed_enable

    def _open_store(self) -> MessageStore:
        root = Path(self.settings.store_path_root_dir)
        config = self.settings.store_config(self.host)
        started = time.monotonic()
        self._server_lock = ServerLock(root)
        try:
            store = MessageStore(root, config, clock=self.clock, disk=self._disk)
        except BaseException:
            self._server_lock.leave()
            raise
        log.info("opened %s in %.2f s", root, time.monotonic() - started)
        return store

    def _close_store(self) -> None:
        try:
            self.store.close()
        finally:
            self._server_lock.leave()
