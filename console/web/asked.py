"""What an address of a page asks for: its parameters, read once and checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from starlette.datastructures import QueryParams

from rocketpy.broker_core.moments import milliseconds
from rocketpy.console.place import ListQuestion

_MOST_TEXT = 1024
_MOST_NUMBER = 1 << 62
MOST_UPTO = 16 << 10  # characters of an address
_UPTO = re.compile(r"([^;]*):([0-9]{1,9}):([0-9]{1,18})")


class PageAddressError(ValueError):
    """Is raised when the address of a page asks for what cannot be; the browser is told."""

    def __init__(self, name: str, value: str, remedy: str) -> None:
        super().__init__(name, value, remedy)
        self.name, self.value, self.remedy = name, value, remedy

    def __str__(self) -> str:
        return f"{self.name}={self.value[:80]!r}: {self.remedy}"


def text(params: QueryParams, name: str) -> str:
    """Return a text without blanks around it; empty if it is missing."""
    found = params.get(name, "").strip()
    if len(found) > _MOST_TEXT:
        raise PageAddressError(name, found, f"give at most {_MOST_TEXT:,} characters")
    return found


def needed(params: QueryParams, name: str) -> str:
    """Return a text that may not be missing."""
    found = text(params, name)
    if not found:
        raise PageAddressError(name, found, "it is missing")
    return found


def number(params: QueryParams, name: str, default: int | None = None) -> int:
    """Return a number from 0 on."""
    found = text(params, name)
    if not found and default is not None:
        return default
    if not (found.isascii() and found.isdigit()) or int(found) > _MOST_NUMBER:
        raise PageAddressError(name, found, "give a number")
    return int(found)


def time_ms(params: QueryParams, name: str) -> int | None:
    """Return a time in ms; None if it is missing."""
    found = text(params, name)
    if not found:
        return None
    return int(found) if found.isascii() and found.isdigit() else milliseconds(name, found)


def upto(params: QueryParams) -> dict[tuple[str, int], int]:
    """Return up to where queues are read, as upto_text() wrote it."""
    given = params.get("upto", "")
    found = {}
    for each in given[:MOST_UPTO].split(";") if given else []:
        match = _UPTO.fullmatch(each)
        if match is None:
            raise PageAddressError("upto", given, "follow a link of the page before")
        found[match[1], int(match[2])] = int(match[3])
    return found


def upto_text(ends: Mapping[tuple[str, int], int]) -> str:
    """Return the same as text; empty if it would be too long."""
    text = ";".join(f"{broker}:{number}:{end}" for (broker, number), end in ends.items())
    return text if len(text) <= MOST_UPTO else ""


def list_question(params: QueryParams, orders: Collection[str]) -> ListQuestion:
    """Return which part of a list is wanted."""
    order = text(params, "sort") or "name"
    name = order.removeprefix("-")
    if name not in orders:
        raise PageAddressError(
            "sort", order, f"give one of {', '.join(orders)}; with - before it, the greatest first"
        )
    return ListQuestion(
        text=text(params, "q"),
        order=name,
        is_descending=order.startswith("-"),
        page=max(number(params, "page", 1), 1),
        everything=text(params, "all") == "1",
    )
