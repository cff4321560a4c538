"""Threads for handlers that are plain functions, as many as run at once.

They are daemons: a handler that never returns keeps no program from ending. (Those of
concurrent.futures are waited for.)
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable

_Work = tuple[asyncio.AbstractEventLoop, "asyncio.Future[object]", Callable[[], object]]


class HandlerThreads:
    """Calls functions in threads, which are started on use. Used in one loop."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._started = self._busy = 0

    async def call(self, function: Callable[[], object]) -> object:
        """Return what a function returns, or raise what it raises; it has the caller's context."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        self._busy += 1
        if self._started < min(self._busy, self._most):
            self._started += 1
            name = f"{self._name}-{self._started}"
            threading.Thread(target=self._run, name=name, daemon=True).start()
        self._work.put((loop, future, lambda: context.run(function)))
        try:
            return await future
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Let the threads end, each after what it does now."""
        for _ in range(self._started):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            loop, future, function = work
            try:
                result, error = function(), None
            except BaseException as raised:  # a handler's, whatever it is, is not ours
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(_resolve, future, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return
            del work, future, function, result, error  # a thread that waits holds no message


def _resolve(future: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        future.set_exception(error)
    else:  # a future cannot have it, or it would end the loop
        future.set_exception(RuntimeError(f"the handler raised {error!r}"))
