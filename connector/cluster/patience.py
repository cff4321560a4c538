"""Servers that do not answer now: asked again for a while, then named with what to do.

For what a plan asks outside of its own looks, where an error would end the query.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from rocketpy.broker_core.client.range_reading import Unanswered
from rocketpy.connector.topics import UnreachableError

log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_Result = TypeVar("_Result")


def patiently(
    ask: Callable[[], _Result],
    what: object,
    *,
    retry_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> _Result:
    """Return what asking gives.

    Raises:
        UnreachableError: nothing, for as long as it is tried.
    """
    since_s, pause_s = time.monotonic(), _FIRST_PAUSE_S
    while True:
        try:
            return ask()
        except Unanswered as cause:
            if time.monotonic() - since_s + pause_s > retry_s:
                raise UnreachableError(f"{what} ({cause})") from cause
            log.warning("asking for %s again in %.1f s: %s", what, pause_s, cause)
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
