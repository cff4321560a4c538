"""What planning needs of a place that holds messages; it does not know which it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rocketpy.connector.offsets import MessageQueue


class Backend(Protocol):
    """A source of messages."""

    @property
    def broker(self) -> str:
        """The broker of queues that are named by their id alone."""

    def topics(self) -> Sequence[str]:
        """Return the names of all topics."""

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        """Return the queues of some topics: first offset that is held, and behind the last."""

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return where in the log a message of a queue lies; None if there is no such entry."""

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the first offset stored at or after a time; the end if there is none."""

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return how many bytes each message of a range has; fewer, if a bounded look is less."""

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a group committed."""

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        """Note the next offset to read of some queues, durably."""
