"""`GET /metrics` over HTTP, from a thread of its own, of whatever is told as text."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SILENT_S = 10.0  # for a request to come, and for an answer to be taken
_LOOK_S = 0.05  # how often it looks whether to end


class TextServer:
    """Answers scrapes: bound when it is made, answering between start() and stop().

    A connection has a thread while it is open.
    """

    def __init__(self, scrape: Callable[[str], bytes], *, port: int, host: str = "") -> None:
        """Listen on `host`, or else on loopback; `scrape` gets the query of an address.

        Raises:
            OSError: the port is taken, or the address is not of this machine.
        """
        self._server = _listening(host or "127.0.0.1", port)
        self._server.scrape = scrape
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """What to scrape."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}{PATH}"

    def start(self) -> None:
        """Answer from now on."""
        arguments = {"poll_interval": _LOOK_S}
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs=arguments,
            name="rocketpy-metrics",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Answer no more. Stopping twice is fine."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    scrape: Callable[[str], bytes]
    daemon_threads = True  # a scrape that hangs does not keep the process

    def server_bind(self) -> None:
        """Bind, without asking a name server of the internet what this machine is called."""
        super(HTTPServer, self).server_bind()
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), port

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in the log what the standard library would print: mostly that a client went."""
        del request
        log.info("a scrape by %s was cut off", client_address, exc_info=True)


def _listening(host: str, port: int) -> _Listener:
    try:
        return _Listener((host, port), _Handler)
    except (OSError, OverflowError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else "there is no such port"
        reason = f"cannot listen on {host}:{port}: {why}; give another address or port"
        raise OSError(getattr(cause, "errno", None), reason) from cause


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    timeout = _SILENT_S

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path != PATH:
            self.send_error(404, f"only {PATH} is here")
            return
        try:
            body = self.server.scrape(asked.query)
        except Exception as cause:
            log.exception("a scrape failed")
            self.send_error(500, "the scrape failed", str(cause))
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing for each scrape."""
