"""docs/delay.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from rocketpy.broker_core.config import DELAY_LEVELS, StoreConfig
from rocketpy.broker_core.delay.lease import DEFAULT_MS
from rocketpy.broker_core.delay.progress import TIMER, TimerMark, level_source
from rocketpy.broker_core.metadata.delay_offsets import DelayOffsets
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.metadata.timer_check import TimerCheck
from rocketpy.broker_core.property_names import (
    DELAY,
    REAL_QUEUE,
    REAL_TOPIC,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
)
from rocketpy.broker_core.storage.layout import LEASES

TEXT = (Path(__file__).parents[2] / "docs" / "delay.md").read_text()
ROWS = [tuple(re.split(r"\s*\|\s*", line.strip("| "))) for line in TEXT.splitlines() if "|" in line]


def test_the_levels_are_those_of_the_code() -> None:
    found = [row for row in ROWS if row[0].isdigit()]
    assert found == [(str(n), word) for n, word in enumerate(DELAY_LEVELS.split(), 1)]


def test_the_guarantee_is_one_sentence_at_the_top() -> None:
    title, guarantee = TEXT.split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.fullmatch(r"\*\*[^.]+\.\*\*", guarantee)


def test_marks_names_and_files_are_those_of_the_code() -> None:
    names = [SCHEDULE_TOPIC, TIMER_TOPIC, DELAY, REAL_TOPIC, REAL_QUEUE, TIMER_OUT_MS]
    names += [TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS, f"{LEASES}/delivery", "timer_max_delay_s"]
    names += [f"config/{DelayOffsets.FILE_NAME}", f"config/{TimerCheck.FILE_NAME}"]
    for name in names:
        assert f"`{name}`" in TEXT, name
    marks = {row[0].strip("`") for row in ROWS}
    assert {level_source(1).replace("1", "n"), TIMER} <= marks
    assert len(TimerMark._fields) == 4
    assert DEFAULT_MS == 10_000
    assert StoreConfig().timer_max_delay_s == 3 * 86_400
