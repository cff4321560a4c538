"""The end of a process that plans a stream: the driver hangs up, and nothing is wrong.

PySpark's planner then tries to report the end of the connection over the connection, fails, and
prints a traceback to the terminal of whoever stopped the query.
"""

from __future__ import annotations

import sys
from types import TracebackType


def expect_hang_up() -> None:
    """Have nothing printed if this process ends because the driver has closed the connection.

    Call it when the reader is stopped: an EOFError on its way says that it was the driver's wish.
    """
    if isinstance(sys.exc_info()[1], EOFError):
        sys.excepthook = _report_unless_connection


def _report_unless_connection(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if not isinstance(error, ConnectionError):
        sys.__excepthook__(kind, error, trace)
