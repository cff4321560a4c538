"""What analytics are asked for, checked before anything runs; every refusal says the remedy."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.options import OptionError
from rocketpy.connector.positions import parse_time

Time = str | int | datetime  # ms since 1970, a text like 2026-01-31T08:00:00Z, or with a time zone

_EVERY = re.compile(r"\s*([1-9]\d{0,8})\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


class ArgumentError(RocketPyError):
    """Is raised for an argument that cannot be meant; says what to give instead."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(argument, reason)
        self.argument, self.reason = argument, reason

    def __str__(self) -> str:
        return f"argument '{self.argument}' {self.reason}"


def window_text(every: str) -> str:
    """Return the length of a window as Spark reads it: '5 minutes'."""
    found = _EVERY.fullmatch(str(every))
    if found is None:
        reason = f"is {every!r}; give a number and second, minute, hour, day or week: '5 minutes'"
        raise ArgumentError("every", reason)
    return f"{found[1]} {found[2].lower()}s"


def time_ms(argument: str, value: Time | None) -> int | None:
    """Return a time in ms. A text without a zone is UTC; a datetime must have one."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ArgumentError(argument, f"is {value!r} without a time zone; give one with it")
        value = value.astimezone(timezone.utc).isoformat()
    try:
        return parse_time(argument, str(value))
    except OptionError as cause:
        raise ArgumentError(argument, cause.reason) from cause


def check_count(argument: str, value: int) -> int:
    """Accept a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise ArgumentError(argument, f"is {value!r}; give a whole number of at least 1")
    return value
