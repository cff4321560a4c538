"""How 5.x labels what clients say of themselves with a heartbeat: their version, their mode.

Since 4.0.0 each version has two numbers, its snapshot's and its own (MQVersion). Of older ones the
number itself is told.
"""

from __future__ import annotations

_SNAPSHOT_OF_4_0_0 = 212
_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}


def version_name(number: int) -> str:
    """Return a version as 5.x labels it, such as `v5_5_0`."""
    index, is_release = divmod(number - _SNAPSHOT_OF_4_0_0, 2)
    if not 0 <= index < 200:  # 4.0.0 up to 5.9.9
        return f"v{number}"
    name = f"v{4 + index // 100}_{index // 10 % 10}_{index % 10}"
    return name if is_release else f"{name}_snapshot"


def mode_name(consume_type: str | None) -> str:
    """Return how a group consumes: push, pull or pop."""
    return _MODES.get(consume_type or "", "")
