"""The name server: a table of routes, some values, and the server that brokers and clients reach.

Several may run side by side: they know nothing of each other, brokers register with every one.
All state belongs to the loop's thread, but for the values, whose file is written in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.clock import Clock, SystemClock, steady_ms
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.nameserver.key_values import KeyValues
from rocketpy.broker_core.nameserver.routes import RouteTable
from rocketpy.broker_core.nameserver.settings import NameServerSettings
from rocketpy.broker_core.nameserver.table import HANDLERS
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.server import Server, bind
from rocketpy.broker_core.net.service import Service
from rocketpy.broker_core.net.tls import server_context
from rocketpy.broker_core.storage.disk import Disk

log = logging.getLogger(__name__)


class NameServer:
    """One name server, started and stopped in a loop."""

    key_values: KeyValues
    host: Host  # where it listens, known once it does

    def __init__(
        self, settings: NameServerSettings | None = None, *, clock: Clock | None = None
    ) -> None:
        self.settings = settings or NameServerSettings()
        self._clock = clock or SystemClock()
        self.routes = RouteTable()
        self._disk = Disk()
        self._watched: set[Connection] = set()
        self._server: Server | None = None

    @property
    def address(self) -> str:
        """Where brokers and clients find it, once it is started: `host:port`."""
        return f"{self.host.address}:{self.host.port}"

    def now_ms(self) -> int:
        """Return a time that only grows."""
        return steady_ms(self._clock)

    async def start(self) -> None:
        """Load the values and listen: ready on return.

        Raises:
            OSError: the port is taken, or the address is not of this machine.
            KeyValueFileError: the file of the values cannot be understood.
            TlsError: TLS cannot be served as the settings have it.
        """
        self.loop = asyncio.get_running_loop()
        settings = self.settings
        path = settings.kv_config_path
        context = server_context(settings.tls)
        self.key_values = KeyValues(Path(path) if path else None, self._disk)
        listening = bind(settings.bind_address, settings.listen_port)
        self.host = Host(settings.bind_address, listening.getsockname()[1])
        self._pool = ThreadPoolExecutor(1, "rocketpy-namesrv")
        self._changing = asyncio.Lock()
        self._server = Server(
            Service(self, HANDLERS, self._pool),
            [listening],
            idle_s=settings.server_channel_max_idle_time_seconds,
            tls=context,
            tls_mode=settings.tls.mode,
        )
        self._server.start()
        self._scanning = self.loop.create_task(self._scan())
        log.info("the name server listens at %s", self.address)

    async def stop(self) -> None:
        """Answer what was asked, and close all connections. Stopping twice is fine."""
        server, self._server = self._server, None
        if server is None:
            return
        self._scanning.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._scanning
        await server.stop()
        self._pool.shutdown()

    def watch(self, connection: Connection) -> None:
        """Forget the brokers of a connection when it closes."""
        if connection not in self._watched:
            self._watched.add(connection)
            connection.when_closed(self._drop)

    async def change_settings(self, changes: Mapping[str, str]) -> None:
        """Change settings, and keep them where they came from.

        Raises:
            SettingError: a value is not of its kind.
        """
        async with self._changing:
            changed = self.settings.changed(changes)
            if changed.config_store_path:
                loop = asyncio.get_running_loop()
                path = Path(changed.config_store_path)
                await loop.run_in_executor(self._pool, self._save, path, changes)
            self.settings = changed

    def _drop(self, connection: Connection) -> None:
        self._watched.discard(connection)
        self.routes.drop(connection)

    def _save(self, path: Path, changes: Mapping[str, str]) -> None:
        with contextlib.suppress(FileNotFoundError):
            changes = {**java_properties.parse(path.read_text("utf-8")), **changes}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._disk.replace(path, java_properties.format(changes).encode())

    async def _scan(self) -> None:
        """Forget brokers that are silent, time and again."""
        while True:
            await asyncio.sleep(self.settings.scan_not_active_broker_interval / 1000)
            for connection in self.routes.expire(self.now_ms()):
                if isinstance(connection, Connection):
                    connection.close()
