"""A loop in a thread of its own, for programs without one: servers of tests, blocking clients."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

import uvloop

from rocketpy.broker_core.errors import RocketPyError

_Result = TypeVar("_Result")
_JOIN_S = 10.0


class ForeignLoopError(RocketPyError):
    """Is raised in a forked child that uses the loop of its parent, which does not run there."""

    def __init__(self, owner: int) -> None:
        super().__init__(owner)
        self.owner = owner

    def __str__(self) -> str:
        return f"this runs in process {self.owner}; a forked child cannot tell it anything"


class WaitingInLoopError(RocketPyError):
    """Is raised when something that blocks is called in the thread that it would wait for."""

    def __init__(self, thread: str) -> None:
        super().__init__(thread)
        self.thread = thread

    def __str__(self) -> str:
        return (
            f"this runs in the thread {self.thread}, where nothing may wait; hand the work to a "
            "thread of yours, or use rocketpy.aio"
        )


class _Call(Generic[_Result]):
    """A coroutine that runs in the loop while another thread waits for its end.

    As asyncio.run_coroutine_threadsafe(), at half its price: each call that blocks makes one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _Result]) -> None:
        self._loop, self._work = loop, work
        self._task: asyncio.Task[_Result] | None = None
        self._running = threading.Lock()  # held until the end
        self._running.acquire()
        loop.call_soon_threadsafe(self._start)

    def wait(self, timeout_s: float | None) -> None:
        """Wait for the end.

        Raises:
            TimeoutError: it takes longer.
        """
        if not self._running.acquire(timeout=-1 if timeout_s is None else timeout_s):
            raise TimeoutError(f"no end in {timeout_s:g} s")

    def result(self) -> _Result:
        """Return what it returned, or raise what it raised; after its end."""
        assert self._task is not None
        if self._task.cancelled():  # the loop has ended: nothing of asyncio's to who waits
            raise CancelledError
        return self._task.result()

    def cancel(self) -> None:
        """Have it cancelled, unless the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[_Result]) -> None:
        if not task.cancelled():
            task.exception()  # whoever waited may be gone: it is not to be logged
        self._running.release()


class LoopThread:
    """Runs a loop from now on until it is stopped. Any other thread may use it."""

    def __init__(self, name: str) -> None:
        self._owner = os.getpid()
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_own(self) -> bool:
        """Whether this process started it, and not the one that it was forked from."""
        return self._owner == os.getpid()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in the loop: then it must not wait for it."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, _Result], *, timeout_s: float | None) -> _Result:
        """Return what a coroutine returns, or raise what it raises.

        Raises:
            ForeignLoopError: the process was forked from the one where the loop runs.
            WaitingInLoopError: the caller runs in the loop, and would wait for itself.
            TimeoutError: it takes longer; it is cancelled.
        """
        if not self.is_own:
            work.close()
            raise ForeignLoopError(self._owner)
        if self.is_current:
            work.close()
            raise WaitingInLoopError(self._thread.name)
        call = _Call(self._loop, work)
        try:
            call.wait(timeout_s)
        except BaseException:  # Ctrl-C, too
            call.cancel()
            raise
        return call.result()

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Have a coroutine run in the loop; nobody waits for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Callable[[], object]) -> None:
        """Have a function called in the loop soon."""
        self._loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """End the loop and its thread; tasks that are left are cancelled. Twice is fine."""
        if self.is_own and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            self._loop.close()
