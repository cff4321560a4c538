"""A message as a form has it, read for either kind of place."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple

from rocketpy.broker_core.errors import MessageRefusedError

MOST_BODY = 2 << 20  # bytes; by a form


class Letter(NamedTuple):
    """A message that is to be sent."""

    body: bytes
    tag: str | None = None
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    queue_id: int | None = None
    sharding_key: str | None = None
    delay_level: int = 0


class Sent(NamedTuple):
    """Where a message is; one that waits has no place in its topic yet."""

    msg_id: str
    broker: str
    queue_id: int
    queue_offset: int
    is_waiting: bool


def body_of(text: str, written: str) -> bytes:
    """Return the body that was typed: as text, whose lines end by LF, or as base64.

    Raises:
        MessageRefusedError: it is no base64, no Unicode, or too long for a form.
    """
    try:
        if written == "base64":
            body = base64.b64decode("".join(text.split()), validate=True)
        else:
            body = text.replace("\r\n", "\n").encode()  # browsers end lines by CRLF
    except (binascii.Error, UnicodeEncodeError) as cause:
        raise MessageRefusedError("body", f"it is no {written}: {cause}") from cause
    if len(body) > MOST_BODY:
        reason = f"{len(body):,} bytes; {MOST_BODY:,} fit here, rocketpy send takes more"
        raise MessageRefusedError("body", reason)
    return body


def properties_of(text: str) -> dict[str, str]:
    """Return the properties that were typed, NAME=VALUE on each line.

    Raises:
        MessageRefusedError: a line is none, or a name comes twice.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise MessageRefusedError(f"the property {line[:80]!r}", "give NAME=VALUE")
        if name.strip() in found:
            raise MessageRefusedError(f"the property {name.strip()!r}", "it is given twice")
        found[name.strip()] = value
    return found
