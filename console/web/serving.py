"""The console as a server: bound when it is made, and run in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

import uvicorn

from rocketpy.console.place import WatchedPlace
from rocketpy.console.spark import SparkWatch
from rocketpy.console.web.app import make_app
from rocketpy.console.web.headers import LOOPBACK

_STOP_S = 2  # how long requests that are under way are waited for


class ConsoleServer:
    """Serves pages of some places, which it closes at its end."""

    def __init__(
        self,
        places: Sequence[WatchedPlace],
        *,
        port: int,
        bind: str = LOOPBACK[0],
        host_names: Sequence[str] = (),
        spark: SparkWatch | None = None,
    ) -> None:
        """Bind the port; `host_names` are what browsers may call this machine, besides `bind`.

        `spark` is what looks at queries, if any are shown.

        Raises:
            OSError: the port is taken, or the address is not of this machine.
        """
        self._places, self._spark = places, spark
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        try:
            self._socket = socket.create_server((bind, port), family=family)
        except (OSError, OverflowError) as cause:
            why = cause.strerror if isinstance(cause, OSError) else "there is no such port"
            reason = f"cannot listen on {bind}:{port}: {why}; give another address or port"
            raise OSError(getattr(cause, "errno", None), reason) from cause
        self.port = int(self._socket.getsockname()[1])
        self.address = f"http://{f'[{bind}]' if ':' in bind else bind}:{self.port}/"
        app = make_app(places, (*LOOPBACK, bind, *host_names), spark)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=_STOP_S,
            )
        )
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

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
