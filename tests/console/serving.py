"""A console that serves some places, and what asks it without a browser."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from rocketpy.console.place import WatchedPlace
from rocketpy.console.spark import SparkWatch
from rocketpy.console.web.desk import LoginSettings
from rocketpy.console.web.serving import ConsoleServer, TlsFiles


class Answered(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    text: str


@contextmanager
def serving(
    *places: WatchedPlace,
    login: LoginSettings | None = None,
    tls: TlsFiles | None = None,
    spark: SparkWatch | None = None,
) -> Iterator[ConsoleServer]:
    """Have a console that serves places, which are closed at its end."""
    server = ConsoleServer(places, port=0, login=login, tls=tls, spark=spark)
    server.serve()
    try:
        yield server
    finally:
        server.close()


def ask(
    server: ConsoleServer, path: str, *, method: str = "GET", host: str = "127.0.0.1"
) -> Answered:
    """Ask for a path as it is given: nothing is tidied up before."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        return Answered(answer.status, dict(answer.getheaders()), answer.read().decode("utf-8"))
    finally:
        connection.close()
