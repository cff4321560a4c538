"""The console beside a broker: a process of its own, which ends with the broker, however that ends.

The console is not imported here: it is a program, and may not be installed. Its process reads from
a pipe that nobody writes to; the pipe ends with this process, and that with the pipe.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rocketpy.broker_core.net.running import Startable

_STOP_S = 10.0
_NEEDED = ("jinja2", "starlette", "uvicorn", "prometheus_client")
_PROGRAM = """
import os, signal, sys, threading

def end_with_the_broker():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker
threading.Thread(target=end_with_the_broker, daemon=True).start()
from rocketpy.spark_jobs.cli import main
main()
"""


def require_console() -> None:
    """Make sure that the console is installed.

    Raises:
        BadParameter: it is not.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        remedy = "pip install 'rocketpy-spark[console]', or leave out --console"
        raise typer.BadParameter(f"the console needs {', '.join(missing)}: {remedy}")


class ConsoleBeside:
    """A server that is started and stopped with a console beside it, if there is to be one."""

    def __init__(self, server: Startable, places: Sequence[str], port: int | None) -> None:
        """Show places, on a port of loopback, once the server serves; None: no console."""
        self._server, self._places, self._port = server, places, port
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    async def start(self) -> None:
        """Start the server, then the console.

        Raises:
            BadParameter: the console cannot be served, and has said why.
            as the server's start()
        """
        await self._server.start()
        if self._port is None:
            return
        try:
            await asyncio.to_thread(self._start_console)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the console, then the server."""
        await asyncio.to_thread(self._stop_console)
        await self._server.stop()

    def _start_console(self) -> None:
        words = ["console", *self._places, "--port", str(self._port), "--json"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise typer.BadParameter(f"no console on port {self._port}, it says why above")
        self.address = json.loads(line)["console"]

    def _stop_console(self) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
