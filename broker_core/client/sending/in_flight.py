"""A limit on what is in flight: messages, and bytes.

F1  What is in flight never passes the limits, but for a message or a batch that is larger than a
    limit: it goes alone.
F2  Who waits gets room in the order in which they came, large ones as well as small ones.
"""

from __future__ import annotations

import asyncio
from collections import deque

from rocketpy.broker_core.errors import MessageRefusedError


class InFlight:
    """Room for messages that have no answer yet. Used in one loop."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        """Take the limits.

        Raises:
            MessageRefusedError: there would be no room for a message.
        """
        if most_messages < 1 or most_bytes < 1:
            raise MessageRefusedError("most_in_flight", "there must be room for a message")
        self.most_messages, self.most_bytes = most_messages, most_bytes
        self.messages = self.bytes = 0
        self._waiting: deque[tuple[asyncio.Future[None], int, int]] = deque()
        self._emptied: asyncio.Event | None = None

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._waiting)

    def try_enter(self, messages: int, size_bytes: int) -> bool:
        """Take room if there is some now, and nobody waits for it; leave() gives it back."""
        if self._waiting or not self._fits(messages, size_bytes):
            return False
        self.messages += messages
        self.bytes += size_bytes
        return True

    async def enter(self, messages: int, size_bytes: int) -> None:
        """Take room, after waiting for it if need be; leave() gives it back."""
        if self.try_enter(messages, size_bytes):
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append((place, messages, size_bytes))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # the room was given just now
                self.leave(messages, size_bytes)
            self._let_in()  # others may have waited for this one
            raise

    def leave(self, messages: int, size_bytes: int) -> None:
        """Give room back."""
        self.messages -= messages
        self.bytes -= size_bytes
        if self._waiting:
            self._let_in()
        if not self.messages and self._emptied is not None:
            self._emptied.set()

    async def emptied(self) -> None:
        """Wait until nothing is in flight."""
        if self.messages:
            self._emptied = self._emptied or asyncio.Event()
            self._emptied.clear()
            await self._emptied.wait()

    def _let_in(self) -> None:
        while self._waiting:
            place, messages, size_bytes = self._waiting[0]
            if not place.done():
                if not self._fits(messages, size_bytes):
                    return
                self.messages += messages
                self.bytes += size_bytes
                place.set_result(None)
            self._waiting.popleft()

    def _fits(self, messages: int, size_bytes: int) -> bool:
        return not self.messages or (
            self.messages + messages <= self.most_messages
            and self.bytes + size_bytes <= self.most_bytes
        )
