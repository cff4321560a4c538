"""A client that sends or consumes many messages, and tells now and then how much memory it has.

`python -m tests.broker_core.client.memory_child <name server> <role> <messages>` prints a line of
JSON after each tenth of them, and ends.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import rocketpy
from rocketpy.broker_core.client.consuming.received import ReceivedMessage

TOPIC = "flat"
BATCH = 500
BODY = b"x" * 100


class Telling:
    """Counts messages, from any thread, and tells each tenth."""

    def __init__(self, messages: int) -> None:
        self._step, self._lock = messages // 10, threading.Lock()
        self._left, self._done = messages, 0
        self.is_over = threading.Event()

    def add(self, count: int) -> None:
        with self._lock:
            before, self._done = self._done, self._done + count
            if before // self._step != self._done // self._step:
                print(json.dumps({"messages": self._done, "bytes": resident_bytes()}), flush=True)
            if self._done >= self._left:
                self.is_over.set()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def send_batches(address: str, messages: int, telling: Telling) -> None:
    with rocketpy.connect(address) as mq:
        for _ in range(messages // BATCH):
            mq.send_many(TOPIC, [BODY] * BATCH)
            telling.add(BATCH)


def send_in_loop(address: str, messages: int, telling: Telling) -> None:
    """Send one by one from many coroutines, which wait for room."""

    async def main() -> None:
        async with rocketpy.aio.connect(address) as mq:

            async def send(count: int) -> None:
                for _ in range(count):
                    await mq.send(TOPIC, BODY)
                    telling.add(1)

            await asyncio.gather(*(send(messages // 100) for _ in range(100)))

    asyncio.run(main())


def push(address: str, messages: int, telling: Telling) -> None:  # noqa: ARG001
    def handler(_: ReceivedMessage) -> None:
        telling.add(1)

    with rocketpy.connect(address) as mq, mq.listen("push", TOPIC, handler, start="earliest"):
        telling.is_over.wait()


def poll(address: str, messages: int, telling: Telling) -> None:  # noqa: ARG001
    with (
        rocketpy.connect(address) as mq,
        mq.consumer("poll", TOPIC, start="earliest") as consumer,
    ):
        while not telling.is_over.is_set():
            telling.add(len(consumer.poll(10)))


ROLES: dict[str, Callable[[str, int, Telling], None]] = {
    "batches": send_batches,
    "coroutines": send_in_loop,
    "push": push,
    "poll": poll,
}

if __name__ == "__main__":
    address, role, messages = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ROLES[role](address, messages, Telling(messages))
