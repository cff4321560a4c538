"""Dead letters as a file: lines of JSON, or CSV for a spreadsheet. It changes nothing.

E1  At most some hundred letters, whose bodies are those that pages have: their first 64 KiB.
E2  No cell of CSV is a formula, whatever a message holds: a sign that makes one gets a ' before it.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from rocketpy.broker_core.property_names import RETRY_TOPIC
from rocketpy.console.answers import StoredMessage
from rocketpy.console.place import WatchedPlace, cause_of
from rocketpy.console.web import asked
from rocketpy.console.web.change_letters import chosen_letters
from rocketpy.console.web.shown import exact

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def exported(place: WatchedPlace, params: QueryParams) -> Response:
    """Return a file of the dead letters that were chosen."""
    kind = asked.text(params, "as") or "jsonl"
    if kind not in _KINDS:
        raise asked.PageAddressError("as", kind, f"give one of {', '.join(_KINDS)}")
    write, media_type = _KINDS[kind]
    letters = chosen_letters(place, params)
    group = _NO_NAME.sub("_", asked.needed(params, "group"))
    named = {"Content-Disposition": f'attachment; filename="dead-letters-{group}.{kind}"'}
    text = write([_row(each) for each in letters])
    return Response(text.encode("utf-8", "replace"), headers=named, media_type=media_type)


def _row(letter: StoredMessage) -> dict[str, Any]:
    try:
        body, encoding = letter.body.decode(), "utf-8"
    except UnicodeDecodeError:
        body, encoding = base64.b64encode(letter.body).decode(), "base64"
    return {
        "given_up": exact(letter.stored_ms),
        "cause": cause_of(letter),
        "first_topic": letter.properties.get(RETRY_TOPIC),
        "tries": letter.reconsume_times,
        "keys": list(letter.keys),
        "tags": letter.tags,
        "msg_id": letter.msg_id,
        "uniq_key": letter.uniq_key,
        "broker": letter.broker,
        "queue_id": letter.queue_id,
        "queue_offset": letter.queue_offset,
        "body": body,
        "body_encoding": encoding,
        "body_bytes": letter.body_size,
        "body_is_whole": len(letter.body) == letter.body_size,
        "properties": dict(letter.properties),
    }


def _json_lines(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in rows)


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow([_cell(each) for each in row.values()])
    return text.getvalue()


def _cell(value: Any) -> str | int:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return value
    if isinstance(value, list):
        value = " ".join(value)
    elif isinstance(value, dict):
        value = json.dumps(value)
    text = (value or "").replace("\0", "\N{SYMBOL FOR NULL}")  # which some readers take for an end
    return f"'{text}" if text.startswith(_FORMULA) else text


_KINDS: dict[str, tuple[Callable[[Sequence[dict[str, Any]]], str], str]] = {
    "jsonl": (_json_lines, "application/jsonl"),
    "csv": (_csv, "text/csv"),
}
