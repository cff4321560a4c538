"""Bodies in JSON: the members of a class of Apache's on the wire, values here.

A body is a dataclass. The name of a member on the wire is that of the attribute in camel case,
unless member() gives another one; its kind is that of the annotation. Kinds are str, int, float,
bool, MessageQueue, other bodies, Any (JSON as it is), `tuple[kind, ...]` for lists and sets,
`Mapping[key, kind]` with keys of str, int or MessageQueue, and `| None` where it may be missing.

A member that is missing or null has the attribute's default; without one it is an error. Members
that we do not know are passed over. They are written in the order of their names and without those
that are None, as fastjson does it.

As fastjson, a text that is a number or a truth value is taken for one where one is wanted, a number
for a text, and a number for the name of an enum's value if ordinals say which: clients that are not
in Java write some members so.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.errors import BodyError
from rocketpy.broker_core.protocol.java_json import ObjectKey
from rocketpy.broker_core.protocol.wire_value import WireValue

_Body = TypeVar("_Body", bound="Body")
_WIRE, _ORDINALS = "wire", "ordinals"
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


def member(name: str, **options: Any) -> Any:
    """Return an attribute that has another name on the wire; options are those of field()."""
    return dataclasses.field(metadata=named(name), **options)


def named(name: str) -> Mapping[str, str]:
    """Return the metadata of an attribute that has another name on the wire."""
    return {_WIRE: name}


def choice(default: str | None, ordinals: Sequence[str]) -> Any:
    """Return an attribute that is the name of an enum's value; ordinals has Apache's, in order."""
    return dataclasses.field(default=default, metadata={_ORDINALS: ordinals})


def empty() -> Any:
    """Return an attribute that is an empty mapping unless it is said otherwise."""
    return dataclasses.field(default_factory=dict)


class Body(WireValue):
    """What a request or an answer says beside its header, or a part of it."""

    JAVA: ClassVar[str]  # the name of Apache's class for it

    @classmethod
    def decode(cls: type[_Body], data: bytes | memoryview) -> _Body:
        """Return what a body says.

        Raises:
            BodyError: it is no JSON, a member is missing, or one is not of its kind.
        """
        try:
            members = java_json.loads(data)
        except ValueError as cause:
            raise BodyError(cls.JAVA, f"a body that is no JSON: {cause}") from cause
        return cls.of_json(members)

    @classmethod
    def of_json(cls: type[_Body], value: Any) -> _Body:
        """Return what a value of JSON says.

        Raises:
            BodyError: it is no object, a member is missing, or one is not of its kind.
        """
        try:
            return cls.of_members(value)
        except _KindError as error:
            raise BodyError(cls.JAVA, str(error)) from None

    def encode(self) -> bytes:
        """Return the body as JSON; keys that are numbers or queues are bare."""
        return java_json.dumps(self.members())

    @classmethod
    def of_members(cls: type[_Body], members: Any) -> _Body:
        """Return what an object of JSON says, for a body that has this one as a part."""
        if not isinstance(members, dict):
            raise _KindError(members, "an object")
        values = {}
        for known in layout_of(cls):
            value = members.get(known.wire_name)
            if value is not None:
                try:
                    values[known.attribute] = known.read(value)
                except _KindError as error:
                    error.path.append(known.wire_name)
                    raise
            elif known.is_required:
                raise _KindError(None, "there", known.wire_name)
        return cls(**values)

    def members(self) -> dict[str, Any]:
        """Return the body as an object of JSON."""
        return {
            known.wire_name: known.show(value)
            for known in layout_of(type(self))
            if (value := getattr(self, known.attribute)) is not None
        }


class _KindError(Exception):
    """A value is of another kind; the path to it grows from the inside."""

    def __init__(self, value: object, wanted: str, *path: str) -> None:
        super().__init__(value, wanted)
        self.value, self.wanted, self.path = value, wanted, list(path)

    def __str__(self) -> str:
        where = ".".join(reversed(self.path))
        if not where:
            return f"a body that is not {self.wanted}"
        if self.value is None:
            return f"the member {where!r} is missing"
        return f"the member {where!r} is {self.value!r:.40}, not {self.wanted}"


# --- kinds ------------------------------------------------------------------------------------


class MemberKind(NamedTuple):
    """How values of a kind are read and written."""

    read: Callable[[Any], Any]
    show: Callable[[Any], Any]


class MemberLayout(NamedTuple):
    """How an attribute is written."""

    attribute: str
    wire_name: str
    is_required: bool
    read: Callable[[Any], Any]
    show: Callable[[Any], Any]


_layouts: dict[type[Body], tuple[MemberLayout, ...]] = {}


def layout_of(body: type[Body]) -> tuple[MemberLayout, ...]:
    """Return how the members of a body are written, by their names on the wire."""
    known = _layouts.get(body)
    if known is None:
        hints = typing.get_type_hints(body)
        found = [_member(field, hints[field.name]) for field in dataclasses.fields(body)]
        known = _layouts[body] = tuple(sorted(found, key=lambda layout: layout.wire_name))
    return known


def _member(field: dataclasses.Field[Any], hint: Any) -> MemberLayout:
    if isinstance(hint, types.UnionType):
        (hint,) = (each for each in hint.__args__ if each is not type(None))
    missing = dataclasses.MISSING
    is_required = field.default is missing and field.default_factory is missing
    name = field.metadata.get(_WIRE) or _camel_case(field.name)
    read, show = _kind(hint)
    if _ORDINALS in field.metadata:
        read = _name_reader(field.metadata[_ORDINALS])
    return MemberLayout(field.name, name, is_required, read, show)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _kind(hint: Any) -> MemberKind:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return _list_of(_kind(arguments[0]))
    if origin is collections.abc.Mapping:
        return _mapping_of(_KEYS[arguments[0]], _kind(arguments[1]))
    assert issubclass(hint, Body), hint
    return MemberKind(hint.of_members, hint.members)


def _list_of(item: MemberKind) -> MemberKind:
    read_item, show_item = item

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _KindError(value, "a list")
        return tuple([read_item(each) for each in value])

    def show(value: tuple[Any, ...]) -> list[Any]:
        return [show_item(each) for each in value]

    return MemberKind(read, show)


def _mapping_of(key: MemberKind, item: MemberKind) -> MemberKind:
    def read(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise _KindError(value, "an object")
        found = {}
        for name, each in value.items():
            try:
                found[key.read(name)] = item.read(each)
            except _KindError as error:
                error.path.append(str(name))
                raise
        return found

    def show(value: Mapping[Any, Any]) -> dict[Any, Any]:
        return {key.show(name): item.show(each) for name, each in value.items()}

    return MemberKind(read, show)


def _read_text(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        raise _KindError(value, "a text")
    return value


def _read_whole(value: Any) -> int:
    if type(value) is str and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise _KindError(value, "a whole number of 64 bits")
    return value


def _read_number(value: Any) -> float:
    if type(value) is int and abs(value) < 1 << 63:
        return float(value)
    if type(value) is not float:
        raise _KindError(value, "a number")
    return value


def _read_truth(value: Any) -> bool:
    if type(value) is str:
        value = {"true": True, "false": False}.get(value.lower(), value)
    if type(value) is not bool:
        raise _KindError(value, "true or false")
    return value


def _name_reader(ordinals: Sequence[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if type(value) is int:
            if not 0 <= value < len(ordinals):
                raise _KindError(value, f"one of {len(ordinals)} names")
            return ordinals[value]
        return _read_text(value)

    return read


def _read_queue(value: Any) -> MessageQueue:
    try:
        return MessageQueue(
            _read_text(value["topic"]),
            _read_text(value["brokerName"]),
            _read_whole(value["queueId"]),
        )
    except (KeyError, TypeError, _KindError):
        raise _KindError(value, "a queue: topic, brokerName and queueId") from None


def _show_queue(queue: MessageQueue) -> dict[str, Any]:
    return {"brokerName": queue.broker, "queueId": queue.queue_id, "topic": queue.topic}


def _read_queue_key(key: Any) -> MessageQueue:
    if not isinstance(key, ObjectKey):
        raise _KindError(key, "a queue")
    return _read_queue(dict(key))


def _show_queue_key(queue: MessageQueue) -> ObjectKey:
    return ObjectKey(_show_queue(queue).items())


def _same(value: Any) -> Any:
    return value


_PLAIN: dict[Any, MemberKind] = {
    str: MemberKind(_read_text, _same),
    int: MemberKind(_read_whole, _same),
    float: MemberKind(_read_number, _same),
    bool: MemberKind(_read_truth, _same),
    Any: MemberKind(_same, _same),
    MessageQueue: MemberKind(_read_queue, _show_queue),
}
_KEYS: dict[Any, MemberKind] = {
    str: _PLAIN[str],
    int: _PLAIN[int],
    MessageQueue: MemberKind(_read_queue_key, _show_queue_key),
}
