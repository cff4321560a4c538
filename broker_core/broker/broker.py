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

from rocketpy.broker_core.broker.appender import Appender
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.broker.table import HANDLERS
from rocketpy.broker_core.broker.topics import Topics
from rocketpy.broker_core.broker.waiting_pulls import WaitingPulls
from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.delay.service import DeliveryService
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.server import Server, bind_pair
from rocketpy.broker_core.net.service import Service
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_POOL_THREADS = 8


class Broker:
    """One broker, started and stopped in a loop."""

    loop: asyncio.AbstractEventLoop
    host: Host  # that clients are told; known once it listens
    store: MessageStore
    topics: Topics
    appender: Appender
    waiting_pulls: WaitingPulls

    def __init__(self, settings: BrokerSettings, *, clock: Clock | None = None) -> None:
        self.settings, self.clock = settings, clock or SystemClock()
        self.pool = ThreadPoolExecutor(_POOL_THREADS, "rocketpy-broker")
        self.service = Service(self, HANDLERS, self.pool)
        self.started_ms = self.clock.now_ms()
        self._is_stopped = False

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
            port = sockets[0].getsockname()[1]
            self.host = settings.advertised(port)
            self.store = await self.in_pool(self._open_store)
        except BaseException:
            for each in sockets:
                each.close()
            raise
        self.caller = Caller(self.service)
        self.topics = Topics(self)
        await self.in_pool(self.topics.make_system_topics)
        self.appender = Appender(self)
        self.waiting_pulls = WaitingPulls(self)
        self._delivery = DeliveryService(self.store)
        self._delivery.__enter__()
        self._server = Server(
            self.service, sockets, idle_s=settings.server_channel_max_idle_time_seconds
        )
        self._server.start()
        log.info("%s serves %s at %s", settings.broker_name, self.store.root, self.host)

    async def stop(self) -> None:
        """Answer what was asked, save all, and leave the store clean. Stopping twice is fine."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self.waiting_pulls.stop()
        await self.appender.drained()
        await self._server.stop()
        self.caller.close()
        await self.in_pool(self._delivery.stop)
        await self.in_pool(self.store.close)
        self.pool.shutdown(wait=False)

    async def in_pool(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run what may block in a thread."""
        return await self.loop.run_in_executor(self.pool, work, *arguments)

    def _open_store(self) -> MessageStore:
        root = Path(self.settings.store_path_root_dir)
        config = self.settings.store_config(self.host)
        started = time.monotonic()
        store = MessageStore(root, config, clock=self.clock)
        log.info("opened %s in %.2f s", root, time.monotonic() - started)
        return store
