"""One message from the arguments of `send`: its body as it is stored, and its properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocketpy.broker_core.codec.compression import CODECS, deflate
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import UniqueKeys, join_keys
from rocketpy.broker_core.property_names import KEYS, SHARDING_KEY, TAGS, UNIQ_KEY

unique_keys = UniqueKeys()


def stored_body(body: bytes | str, compress: str | None) -> tuple[bytes, int]:
    """Return the body as it is stored, and the sysFlag that says how."""
    if type(body) is bytes and compress is None:
        return body, 0
    try:
        data = body.encode() if isinstance(body, str) else bytes(body)
    except UnicodeEncodeError as cause:
        raise MessageRefusedError("body", f"not valid Unicode: {cause}") from cause
    if compress is None:
        return data, 0
    if compress not in CODECS:
        raise MessageRefusedError(f"compress={compress!r}", f"give one of {', '.join(CODECS)}")
    return deflate(data, compress)


def message_properties(
    tags: str | None,
    keys: str | Sequence[str],
    properties: Mapping[str, str] | None,
    sharding_key: str | None,
    new_key: str | None = None,
) -> dict[str, str]:
    """Return all properties of a message, a unique key among them: its own, or a new one."""
    named = {}
    if not properties or UNIQ_KEY not in properties:
        named[UNIQ_KEY] = new_key or unique_keys.next()
    if keys:
        named[KEYS] = join_keys(keys)
    if tags:
        named[TAGS] = tags
    if sharding_key:
        named[SHARDING_KEY] = sharding_key
    if not properties:
        return named
    for name, value in properties.items():
        if not isinstance(value, str):
            raise MessageRefusedError(f"property {name!r}", f"a str is wanted, not {value!r}")
    return {**properties, **named}
