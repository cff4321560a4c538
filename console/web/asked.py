"""What an address of a page asks for: its parameters, read once and checked."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import QueryParams

from rocketpy.broker_core.moments import milliseconds
from rocketpy.console.place import ListQuestion

_MOST_TEXT = 1024
_MOST_NUMBER = 1 << 62


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
