"""Messages from the arguments of `send`: the names of both faces, and of a store's `send`."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from rocketpy.broker_core.client.drafts import NO_PROPERTIES, MessageDraft, plain_draft
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.single import stored_body
from rocketpy.broker_core.moments import Time, milliseconds

Body = bytes | bytearray | memoryview | str
MessageLike = Body | Mapping[str, Any]  # a body, or a dict of the arguments of `send`


class MessageOptions(TypedDict, total=False):
    """All that may be said of a message besides its topic and its body; see send()."""

    tags: str | None
    keys: str | Sequence[str]
    properties: Mapping[str, str] | None
    queue_id: int | None
    sharding_key: str | None
    flag: int
    delay_level: int
    deliver_at: Time | None
    delay_s: float | None


def message_draft(
    body: Body,
    *,
    tags: str | None = None,
    keys: str | Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    queue_id: int | None = None,
    sharding_key: str | None = None,
    flag: int = 0,
    delay_level: int = 0,
    deliver_at: Time | None = None,
    delay_s: float | None = None,
) -> MessageDraft:
    """Return the message that arguments say.

    Raises:
        MessageRefusedError: one of them is not of its kind.
    """
    if type(body) is not bytes:
        if not isinstance(body, (str, bytes, bytearray, memoryview)):
            raise _refusal("body", body, "bytes or str")
        body = stored_body(bytes(body) if not isinstance(body, str) else body, None)[0]
    # Asked here, too, whether it is what it should be: each send passes, and a call costs more.
    if tags is not None:
        _require_text("tags", tags)
    if sharding_key is not None:
        _require_text("sharding_key", sharding_key)
    if queue_id is not None:
        _require_whole("queue_id", queue_id)
    if type(flag) is not int:
        _require_whole("flag", flag)
    if type(delay_level) is not int:
        _require_whole("delay_level", delay_level)
    if properties is not None and not isinstance(properties, Mapping):
        raise _refusal("properties", properties, "a dict of str")
    if delay_s is not None and (isinstance(delay_s, bool) or not isinstance(delay_s, (int, float))):
        raise _refusal("delay_s", delay_s, "a number of seconds")
    return MessageDraft(
        body,
        tags,
        keys,
        properties or NO_PROPERTIES,
        queue_id,
        sharding_key,
        flag,
        delay_level,
        None if deliver_at is None else milliseconds("deliver_at", deliver_at),
        None if delay_s is None else round(delay_s * 1000),
    )


_NAMES = frozenset(inspect.signature(message_draft).parameters)


def message_drafts(messages: Sequence[MessageLike]) -> list[MessageDraft]:
    """Return the messages of send_many(): each is a body, or a dict of the arguments of `send`.

    Raises:
        MessageRefusedError: one of them is neither, or has an argument that there is not.
    """
    return [
        plain_draft(message)  # most are so, and there is nothing to check
        if type(message) is bytes
        else _mapped_draft(number, message)
        if isinstance(message, Mapping)
        else message_draft(message)
        for number, message in enumerate(messages)
    ]


def _mapped_draft(number: int, message: Mapping[str, Any]) -> MessageDraft:
    if not _NAMES.issuperset(message):
        name = next(each for each in message if each not in _NAMES)
        near = difflib.get_close_matches(str(name), _NAMES, n=1)
        hint = f"; is {near[0]} meant?" if near else f": give {', '.join(sorted(_NAMES))}"
        raise MessageRefusedError(f"message {number}", f"nothing is called {name!r}{hint}")
    if "body" not in message:
        raise MessageRefusedError(f"message {number}", "it has no body")
    return message_draft(**message)


def _require_text(name: str, text: object) -> None:
    if text is not None and not isinstance(text, str):
        raise _refusal(name, text, "a str")


def _require_whole(name: str, number: object) -> None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise _refusal(name, number, "a whole number")


def _refusal(name: str, value: object, wanted: str) -> MessageRefusedError:
    return MessageRefusedError(f"{name}={value!r}"[:80], f"give {wanted}")
