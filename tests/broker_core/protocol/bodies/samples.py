"""Every class of bodies, and one of each with all members said."""

from __future__ import annotations

import collections.abc
import importlib
import pkgutil
import types
import typing
from typing import Any

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol import bodies
from rocketpy.broker_core.protocol.bodies.body import Body

QUEUE = MessageQueue("topic", "broker-a", 3)
# Where Apache has an enum, one of its names; where we keep JSON as it is, some.
CHOSEN: dict[str, Any] = {
    "consume_type": "CONSUME_ACTIVELY",
    "message_model": "BROADCASTING",
    "consume_from_where": "CONSUME_FROM_TIMESTAMP",
    "language": "GO",
    "topic_filter_type": "MULTI_TAG",
    "consume_result": "CR_LATER",
    "retry_policy": {"type": "CUSTOMIZED"},
    "subscription_data_set": (),
    "topic_queue_mapping_detail_map": {},
    "topic_queue_mapping_info_map": {},
    "connections": (),
    "client": {
        "lastReadTimestamp": 1,
        "lastWriteTimestamp": 2,
        "masterFlushOffset": 3,
        "maxOffset": 4,
        "transferredByteInSecond": 5,
    },
    "queues": {},
    "popped_queues": {},
    "status_table": {},
    "properties": {"a": "b"},
}


def body_classes() -> list[type[Body]]:
    """Return all classes of bodies, by name."""
    for module in pkgutil.iter_modules(bodies.__path__):
        importlib.import_module(f"{bodies.__name__}.{module.name}")
    found = {each for each in Body.__subclasses__() if each.__module__.startswith("rocketpy.")}
    return sorted(found, key=lambda each: each.__name__)


def sample(body: type[Body]) -> Body:
    """Return a body all of whose members are said, most of them not as their defaults are."""
    hints = typing.get_type_hints(body)
    hints.pop("JAVA")
    return body(**{name: _value(name, hint) for name, hint in hints.items()})


def _value(name: str, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        (hint,) = (each for each in hint.__args__ if each is not type(None))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if name in CHOSEN and (not arguments or Any in arguments):
        return CHOSEN[name]
    if origin is tuple:
        return (_value("", arguments[0]),)
    if origin is collections.abc.Mapping:
        return {_value("", arguments[0]): _value("", arguments[1])}
    if isinstance(hint, type) and issubclass(hint, Body):
        return sample(hint)
    return {str: "text é", int: 7, float: 1.5, bool: True, MessageQueue: QUEUE}[hint]
