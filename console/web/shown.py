"""How values are written on pages: times, ages, sizes, bodies, and a line of the last hour."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from typing import Literal, NamedTuple

from rocketpy.console.answers import LagSample, QueueSize, StoredMessage
from rocketpy.console.spark import QuerySample

BodyKind = Literal["json", "text", "hex"]
UNKNOWN = "\N{EN DASH}"
BODY_KINDS: tuple[BodyKind, ...] = ("json", "text", "hex")
_MOST_HEX = 4096
_PREVIEW = 100
_WIDTH, _HEIGHT = 240, 40
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_PERMISSIONS = {6: "read, write", 4: "read", 2: "write", 0: "closed"}
# Signs for characters that do something else than being seen.
_SEEN = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}


def count(number: float | None) -> str:
    """Return a number with commas; a dash for what is not known."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def rate(number: float | None) -> str:
    """Return messages a second."""
    if number is None:
        return UNKNOWN
    return f"{number:,.1f}" if 0 < number < 10 else f"{number:,.0f}"


def moment(time_ms: int | None) -> str:
    """Return a time, of UTC, to the second."""
    if not time_ms:
        return UNKNOWN
    try:
        found = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):  # a producer's clock may say anything
        return f"{time_ms} ms"
    return found.strftime("%Y-%m-%d %H:%M:%S")


def exact(time_ms: int | None) -> str:
    """Return a time, of UTC, to the millisecond."""
    text = moment(time_ms)
    return text if not time_ms or text.endswith("ms") else f"{text}.{time_ms % 1000:03d}"


def age(age_ms: int | None) -> str:
    """Return a duration in its largest unit; a dash for what is not known."""
    if age_ms is None:
        return UNKNOWN
    seconds = age_ms / 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds else "0 s"


def size(size_bytes: int | None) -> str:
    """Return a number of bytes in its largest unit."""
    if size_bytes is None:
        return UNKNOWN
    value, unit = float(size_bytes), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size_bytes:,} B" if not unit else f"{value:,.1f} {_UNITS[unit]}"


def about(found: QueueSize | None) -> str:
    """Return the size of messages; an estimate says so."""
    if found is None:
        return UNKNOWN
    return f"about {size(found.size_bytes)}" if found.is_estimate else size(found.size_bytes)


def permission(perm: int) -> str:
    """Return what may be done with a topic."""
    return _PERMISSIONS.get(perm & 6, "closed")


# --- bodies ---------------------------------------------------------------------------------------


class ShownBody(NamedTuple):
    """A body as text, in one of the ways in which it can be shown."""

    kind: BodyKind
    kinds: tuple[BodyKind, ...]  # in which it can be shown
    text: str
    is_cut: bool


def shown_body(message: StoredMessage, wanted: str | None) -> ShownBody:
    """Return a body as it is wanted, or as it reads best."""
    is_whole = len(message.body) == message.body_size
    text = _text(message.body, is_whole=is_whole)
    parsed = _json(text) if text is not None and is_whole else None
    possible = [kind for kind, has in (("json", parsed), ("text", text)) if has is not None]
    kinds = tuple(kind for kind in BODY_KINDS if kind in (*possible, "hex"))
    kind = next((each for each in kinds if each == wanted), kinds[0])
    if kind == "hex":
        is_cut = not is_whole or len(message.body) > _MOST_HEX
        return ShownBody(kind, kinds, hexadecimal(message.body[:_MOST_HEX]), is_cut)
    found = parsed if kind == "json" else text
    return ShownBody(kind, kinds, visible(found or ""), not is_whole)


def preview(message: StoredMessage) -> str:
    """Return the beginning of a body in one line."""
    head = message.body[: 4 * _PREVIEW]
    text = _text(head, is_whole=len(head) == message.body_size)
    if text is None:
        return f"{head[:16].hex(' ')} …"
    line = visible(" ".join(text.split()))
    return line if len(line) <= _PREVIEW else f"{line[:_PREVIEW]} …"


def visible(text: str) -> str:
    """Return a text with signs for what could not be seen."""
    return text.translate(_SEEN)


def hexadecimal(data: bytes) -> str:
    """Return bytes as rows of 16, with their places and what of them is ASCII."""
    rows = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        seen = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:06x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {seen}")
    return "\n".join(rows)


def _text(body: bytes, *, is_whole: bool) -> str | None:
    """Return UTF-8 as text, without a character that was cut in two; None if it is none."""
    for less in range(1 if is_whole else 4):
        try:
            found = body[: len(body) - less].decode("utf-8")
        except UnicodeDecodeError:
            continue
        # Bytes that happen to be UTF-8 are still better seen as bytes.
        odd = sum(1 for char in found[:1000] if ord(char) in _SEEN)
        return found if odd <= len(found[:1000]) // 20 else None
    return None


def _json(text: str) -> str | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


# --- the last hour --------------------------------------------------------------------------------


class Curve(NamedTuple):
    """A line through some values, for SVG; and its first, last and greatest value."""

    points: str
    span_ms: int  # from the first to the last
    first: float
    last: float
    most: float


class NamedCurve(NamedTuple):
    """A curve, what it is of, and how its values are written."""

    name: str
    curve: Curve
    values: tuple[str, str, str]  # first, last, most


def curves(samples: Sequence[LagSample]) -> list[NamedCurve]:
    """Return what is known of the last hour, without what never was anything but zero."""
    waiting = [(each.at_ms, each.pending) for each in samples if each.pending is not None]
    full = [(each.at_ms, each.disk_used) for each in samples if each.disk_used is not None]
    given = [(each.at_ms, each.given) for each in samples if each.given is not None]
    found = [
        ("Unread messages", _curve([(each.at_ms, each.lag) for each in samples]), count),
        ("Messages in", _rates([(each.at_ms, each.stored) for each in samples]), _per_second),
        ("Messages out", _rates(given), _per_second),
        ("Delayed messages", _if_any(_curve(waiting)), count),
        ("Dead letters", _if_any(_curve([(e.at_ms, e.dead_letters) for e in samples])), count),
        ("Disk used", _curve(full), percent),
    ]
    return _named(found)


def query_curves(samples: Sequence[QuerySample]) -> list[NamedCurve]:
    """Return the last hour of a query."""
    behind = [(each.at_ms, each.lag) for each in samples if each.lag is not None]
    found = [
        ("Messages behind", _curve(behind), count),
        ("Rows worked on", _curve([(e.at_ms, e.rows_per_s) for e in samples]), _per_second),
    ]
    return _named(found)


def percent(share: float | None) -> str:
    """Return a share as a percentage."""
    return UNKNOWN if share is None else f"{share:.0%}"


def _named(
    found: Sequence[tuple[str, Curve | None, Callable[[float], str]]],
) -> list[NamedCurve]:
    return [
        NamedCurve(name, curve, (text(curve.first), text(curve.last), text(curve.most)))
        for name, curve, text in found
        if curve is not None
    ]


def _per_second(number: float) -> str:
    return f"{rate(number)}/s"


def _if_any(curve: Curve | None) -> Curve | None:
    return curve if curve is not None and curve.most else None


def _rates(points: Sequence[tuple[int, int]]) -> Curve | None:
    """Return how many a second were added between two looks."""
    return _curve(
        [
            (at, max(after - before, 0) * 1000 / (at - begin))
            for (begin, before), (at, after) in pairwise(points)
            if at > begin
        ]
    )


def _curve(points: Sequence[tuple[int, float]]) -> Curve | None:
    """Return a line through some values by time; None of a single one."""
    if len(points) < 2:
        return None
    (begin, first), (end, last) = points[0], points[-1]
    most = max(value for _, value in points)
    drawn = " ".join(
        f"{(at - begin) / max(end - begin, 1) * _WIDTH:.1f},"
        f"{_HEIGHT - 2 - (value / most if most else 0) * (_HEIGHT - 4):.1f}"
        for at, value in points
    )
    return Curve(drawn, end - begin, first, last, most)
