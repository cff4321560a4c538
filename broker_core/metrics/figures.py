"""Numbers out of what a broker tells of itself as it runs, which is text by Apache's names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SIZE = re.compile(r"([\d.]+) ?([KMGTPE]?i?B)")


def number_of(figures: Mapping[str, str], name: str) -> float | None:
    """Return a number; None if the broker does not tell it, which it says as -1 as well."""
    try:
        found = float(figures[name])
    except (KeyError, ValueError):
        return None
    return found if found >= 0 else None


def rate_of(figures: Mapping[str, str], name: str, place: int) -> float | None:
    """Return one of the rates over ten seconds, a minute and ten minutes, by its place."""
    try:
        return float(figures[name].split()[place])
    except (KeyError, ValueError, IndexError):
        return None


def size_of(text: str | None, place: int = 0) -> float | None:
    """Return one of the sizes in a text like `Total : 252.0 GiB, Free : 99.5 GiB.`, in bytes."""
    found = _SIZE.findall((text or "").replace("Bytes", "B"))
    if place >= len(found):
        return None
    number, unit = found[place]
    power = _UNITS.index(unit if "i" in unit or unit == "B" else f"{unit[0]}iB")
    return float(number) * float(1024**power)


def times_of(text: str | None) -> dict[str, float]:
    """Return how many puts took how long, of a text like `[<=0ms]:7 [0~10ms]:1 `."""
    return {span: float(count) for span, count in re.findall(r"\[([^\]]+)\]:(\d+)", text or "")}
