"""A server as a process: its loop, and the signals that end it."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import uvloop


class Startable(Protocol):
    """A name server, or a broker."""

    async def start(self) -> None:
        """Serve from now on."""

    async def stop(self) -> None:
        """Serve no longer."""


def run(server: Startable, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM, or Ctrl-C; `ready` is called once it serves.

    A second signal while it stops ends it at once.

    Raises:
        KeyboardInterrupt: it was Ctrl-C.
    """
    if _run(_serve(server, ready)) is signal.SIGINT:
        raise KeyboardInterrupt


def _run(work: Coroutine[Any, Any, signal.Signals]) -> signal.Signals:
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _serve(server: Startable, ready: Callable[[], None]) -> signal.Signals:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[signal.Signals] = loop.create_future()

    def end(by: signal.Signals) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
        ended.set_result(by)

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end, each)
    starting = asyncio.ensure_future(server.start())
    await asyncio.wait((starting, ended), return_when=asyncio.FIRST_COMPLETED)
    try:
        if not ended.done():
            await starting
            gc.freeze()  # what is there now stays: the collector need not look at it again
            ready()
            await ended
    finally:
        # A start that was interrupted is let to its end: half a server cannot be stopped.
        await starting
        await server.stop()
    return ended.result()
