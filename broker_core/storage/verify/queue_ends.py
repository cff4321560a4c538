"""I14: what `rocketpy/queues` notes of the ends of queues, compared with their entries."""

from __future__ import annotations

from collections.abc import Container, Iterator

from rocketpy.broker_core.storage.layout import QUEUE_ENDS
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.problems import Problem


def check_queue_ends(parts: StoreParts, known_topics: Container[str] | None) -> Iterator[Problem]:
    """Report queues that end before their noted end; those of deleted topics may."""
    path = parts.root / QUEUE_ENDS
    noted = parts.queue_ends.read()
    if noted is None:
        if path.exists():
            yield Problem("I14", path, 0, "does not match its check sum")
        return
    removed = parts.removed_topics.read()
    for (topic, queue_id), expected in noted.ends.items():
        if expected.physical_offset < removed.end_of(topic):
            continue
        is_unknown = known_topics is not None and topic not in known_topics
        if is_unknown and not (parts.queues.folder / topic).exists():
            continue
        queue = parts.queues.get(topic, queue_id)
        end, last = queue.last()
        if expected.is_lost_in(end, last):
            text = f"ends at {end}, but had messages up to {expected.next_offset - 1}"
            yield Problem("I14", queue.files.folder, end, text)
