"""Ranges of queues as the options of format 'rocketpy' that read them, and nothing else."""

from __future__ import annotations

import json

from rocketpy.connector.offsets import by_topic
from rocketpy.connector.planning import StoredRanges


def range_options(ranges: StoredRanges) -> dict[str, str]:
    """Return the options that read ranges of queues: first offsets, and ends."""
    starts = by_topic({queue: start for queue, (start, _) in ranges.items()})
    ends = by_topic({queue: end for queue, (_, end) in ranges.items()})
    queues = {topic: [*keys] for topic, keys in starts.items()}
    given = {"queues": queues, "startingOffsets": starts, "endingOffsets": ends}
    return {name: json.dumps(value) for name, value in given.items()}
