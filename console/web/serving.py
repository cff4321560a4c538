"""The console as a server: bound when it is made, and run in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvicorn

from rocketpy.console.place import WatchedPlace
from rocketpy.console.spark import SparkWatch
from rocketpy.console.web.app import make_app
from rocketpy.console.web.desk import Desk, LoginSettings
from rocketpy.console.web.headers import LOOPBACK

_STOP_S = 2  # how long requests that are under way are waited for


class TlsFiles(NamedTuple):
    """The console's certificate, with the chain to its authority, and its key: files of PEM."""

    certificate: Path
    key: Path


class ConsoleServer:
    """Serves pages of some places, which it closes at its end."""

    def __init__(
        self,
        places: Sequence[WatchedPlace],
        *,
        port: int,
        bind: str = LOOPBACK[0],
        host_names: Sequence[str] = (),
        login: LoginSettings | None = None,
        tls: TlsFiles | None = None,
        spark: SparkWatch | None = None,
    ) -> None:
        """Bind the port; `host_names` are what browsers may call this machine, besides `bind`.

        With `login` pages are for users, with `tls` they are served by TLS. `spark` is what looks
        at queries, if any are shown.

        Raises:
            OSError: the port is taken, the address is not of this machine, or a file of TLS cannot
                be used.
        """
        self._places, self._spark = places, spark
        self._audit = login.audit if login is not None else None
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        try:
            self._socket = socket.create_server((bind, port), family=family)
        except (OSError, OverflowError) as cause:
            why = cause.strerror if isinstance(cause, OSError) else "there is no such port"
            reason = f"cannot listen on {bind}:{port}: {why}; give another address or port"
            raise OSError(getattr(cause, "errno", None), reason) from cause
        self.port = int(self._socket.getsockname()[1])
        scheme = "http" if tls is None else "https"
        self.address = f"{scheme}://{f'[{bind}]' if ':' in bind else bind}:{self.port}/"
        self.desk = None if login is None else Desk(login, self.port)
        app = make_app(places, (*LOOPBACK, bind, *host_names), self.desk, spark)
        config = uvicorn.Config(
            app,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=_STOP_S,
        )
        try:
            config.load()  # the thread that serves could not tell of a wrong certificate
        except OSError as cause:
            self._socket.close()
            what = f"certificate {tls.certificate} and key {tls.key}" if tls is not None else "TLS"
            raise OSError(cause.errno, f"{what}: {cause.strerror or cause}") from cause
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="console server", daemon=True)

    async def start(self) -> None:
        """Look at places and serve pages from now on."""
        self.serve()

    def serve(self) -> None:
        """Do what start() does, without a loop."""
        for place in self._places:
            place.watch.start()
        if self._spark is not None:
            self._spark.start()
        self._thread.start()

    async def stop(self) -> None:
        """Serve no longer."""
        self.close()

    def close(self) -> None:
        """Do what stop() does, without a loop. One that never served is closed as well."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()
        if self._spark is not None:
            self._spark.stop()
        for place in self._places:
            place.close()
        if self._audit is not None:
            self._audit.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
