"""What consumers do unless they are told otherwise; imported without all the rest of them."""

from __future__ import annotations

MOST_MESSAGES = 32  # asked for at once: what a default Apache broker gives
POLL_S = 5.0
CLOSE_S = 30.0
