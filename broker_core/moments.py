"""Times as users give them, and as they are stored: milliseconds since 1970."""

from __future__ import annotations

import operator
import re
from datetime import datetime, timedelta, timezone

from rocketpy.broker_core.errors import MessageRefusedError

Time = int | datetime | str

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_REMEDY = "give ms since 1970, a datetime with its zone, or a text like '2026-01-31T08:00:00Z'"


def milliseconds(what: str, time: Time) -> int:
    """Return ms since 1970, rounded up: what happened before the time stays before it.

    A text is ISO 8601; one without a zone is UTC, as in options of Spark and on the command line.
    A datetime has to have a zone: Python takes one without for this machine's local time.

    Raises:
        MessageRefusedError: it is no time; says which argument it was.
    """
    if isinstance(time, str):
        return _since_epoch(_parsed(what, time))
    if isinstance(time, datetime):
        if time.tzinfo is None:
            reason = "it has no time zone; give one with it, such as tzinfo=timezone.utc"
            raise MessageRefusedError(f"{what}={time!r}", reason)
        return _since_epoch(time)
    if isinstance(time, bool) or not hasattr(time, "__index__"):
        raise MessageRefusedError(f"{what}={time!r}", f"it is no time; {_REMEDY}")
    return operator.index(time)


def _parsed(what: str, text: str) -> datetime:
    try:
        # Python 3.10 does not read the Z.
        time = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip()))
    except ValueError as cause:
        raise MessageRefusedError(f"{what}={text!r}", f"it is no time; {_REMEDY}") from cause
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _since_epoch(time: datetime) -> int:
    return -((_EPOCH - time) // timedelta(milliseconds=1))
