"""Times as users give them: what is taken, what it means, what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.moments import milliseconds

MILLENNIUM_MS = 946_684_800_000


@pytest.mark.parametrize(
    ("time", "expected_ms"),
    [
        (0, 0),
        (np.int64(7), 7),
        (-1, -1),
        ("2000-01-01T00:00:00Z", MILLENNIUM_MS),
        ("2000-01-01T00:00:00", MILLENNIUM_MS),  # no zone: UTC
        ("2000-01-01", MILLENNIUM_MS),
        (" 2000-01-01 01:00:00+01:00 ", MILLENNIUM_MS),
        ("2000-01-01T00:00:00.000001+00:00", MILLENNIUM_MS + 1),
        (datetime(2000, 1, 1, tzinfo=timezone.utc), MILLENNIUM_MS),
        (datetime(2000, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), MILLENNIUM_MS),
    ],
)
def test_a_time_is_milliseconds_a_datetime_or_a_text(time: Any, expected_ms: int) -> None:
    assert milliseconds("start_time", time) == expected_ms


@pytest.mark.parametrize("time", ["noon", "", "1700000000000", 1.5, True, None, b"2000-01-01"])
def test_what_is_no_time_is_refused_with_what_to_give(time: Any) -> None:
    with pytest.raises(MessageRefusedError, match=r"start_time=.* it is no time; give ms since"):
        milliseconds("start_time", time)


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="it has no time zone; give one with it"):
        milliseconds("start_time", datetime(2000, 1, 1))
