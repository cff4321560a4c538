"""Attributes of topics: which there are, what they may be, and how a request changes them.

As Apache's TopicAttributes and AttributeUtil: a change is a name after a sign, `+` to set it and
`-` to take it away. Two kinds of topics that Apache has are not for this store: those with batch
consume queues, and those that are compacted.
"""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.net.service import RefusedError
from rocketpy.broker_core.protocol.codes import ResponseCode

_MESSAGE_TYPES = frozenset(
    {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "LITE", "PRIORITY"}
)
_VALUES = {
    "queue.type": frozenset({"SimpleCQ"}),
    "cleanup.policy": frozenset({"DELETE"}),
    "message.type": _MESSAGE_TYPES,
}
_NUMBERS = frozenset({"reserve.time", "lite.topic.expiration"})


def altered(current: Mapping[str, str] | None, changes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a topic after changes; `current` is None for a new one.

    Raises:
        RefusedError: an attribute is unknown, may not be changed so, or cannot have its value.
    """
    found = dict(current or {})
    for change, value in changes.items():
        sign, name = change[:1], change[1:]
        if sign == "+":
            _check(name, value)
            found[name] = value
        elif sign == "-" and current is not None:
            if name not in found:
                raise _refused(f"attempt to delete a nonexistent key: {name}")
            del found[name]
        elif sign == "-":
            raise _refused(f"only add attribute is supported while creating topic. key: {name}")
        else:
            raise _refused(f"wrong format key: {change}")
    return found


def _check(name: str, value: str) -> None:
    allowed = _VALUES.get(name)
    if allowed is not None:
        if value not in allowed:
            raise _refused(f"value is not in set: {name}={value}; it may be {sorted(allowed)}")
    elif name not in _NUMBERS:
        raise _refused(f"unsupported key: {name}")
    elif not value.lstrip("-").isdigit():
        raise _refused(f"value is not in range: {name}={value}")


def _refused(remark: str) -> RefusedError:
    return RefusedError(ResponseCode.SYSTEM_ERROR, remark)
