"""Whether a round of delivery can find anything: known cheaply from what the last one left.

Due times of a level ascend, so nothing of a level is due before its first message. New messages
change that only where none waited before: these queues are looked at whenever the log has grown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketpy.broker_core.delay.progress import Mark, level_source, mark_of
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.storage.store import MessageStore

_NEVER = 1 << 62


@dataclass(slots=True)
class Outlook:
    """What is known after a round that left nothing due. Used by one thread."""

    store: MessageStore
    end_mark: bytes  # of the log, before that round
    next_ms: int  # nothing that waited then is due before
    watched: tuple[tuple[str, int, int], ...]  # queues, and where their next message will be
    stored: tuple[list[int], list[int]]  # the queues of either topic that had files

    @classmethod
    def after(
        cls,
        store: MessageStore,
        marks: Mapping[str, Mark],
        end_mark: bytes,
        *,
        timer_end: int,
        timer_next_ms: int | None,
    ) -> Outlook:
        """Return what is known after a round that began with these marks and found nothing due."""
        next_ms = _NEVER if timer_next_ms is None else timer_next_ms
        levels, timers = stored = _stored(store)
        watched = [(TIMER_TOPIC, 0, timer_end)] if timers else []
        for queue_id in levels:
            (offset,) = mark_of(marks, level_source(queue_id + 1))
            times = store.queue(SCHEDULE_TOPIC, queue_id).due_times(offset, offset + 1)
            if len(times) and int(times[0]):
                next_ms = min(next_ms, int(times[0]))
            else:
                watched.append((SCHEDULE_TOPIC, queue_id, offset))
        return cls(store, end_mark, next_ms, tuple(watched), stored)

    def is_clear(self, now_ms: int) -> bool:
        """Whether a round would find nothing to do."""
        if now_ms >= self.next_ms:
            return False
        end_mark = self.store.end_mark()
        if end_mark != self.end_mark:
            if _stored(self.store) != self.stored:
                return False
            for topic, queue_id, offset in self.watched:
                if self.store.queue(topic, queue_id).queue.unit(offset) is not None:
                    return False
            self.end_mark = end_mark
        return True


def _stored(store: MessageStore) -> tuple[list[int], list[int]]:
    return store.stored_queue_ids(SCHEDULE_TOPIC), store.stored_queue_ids(TIMER_TOPIC)
