"""Typed headers: the fields of a request or an answer, as texts on the wire and as values here.

A header is a dataclass. The name of a field on the wire is that of the attribute in camel case,
unless wire() gives another one; its kind is that of the annotation: str, int or bool, and `| None`
where it may be missing.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

from rocketpy.broker_core.protocol.errors import HeaderError
from rocketpy.broker_core.protocol.wire_value import WireValue

_Header = TypeVar("_Header", bound="Header")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_ALWAYS_FITS = 19  # fewer digits than this are a number of 64 bits
_WIRE = "wire"


def wire(name: str, *, default: Any = dataclasses.MISSING) -> Any:
    """Return a field that has another name on the wire."""
    return dataclasses.field(default=default, metadata={_WIRE: name})


class Header(WireValue):
    """The fields of a request or an answer."""

    JAVA: ClassVar[str]  # the name of Apache's class for it

    @classmethod
    def decode(cls: type[_Header], fields: Mapping[str, str]) -> _Header:
        """Return the header that fields say; those that it does not know are passed over.

        Raises:
            HeaderError: a field is missing, or is not of its kind.
        """
        header = cls.__new__(cls)
        # As the constructor, at a third of its price: what is not set here is the class's default.
        values = header.__dict__
        known, required = _form_of(cls)
        for name, text in fields.items():
            field = known.get(name)
            if field is not None:
                attribute, parse = field
                values[attribute] = parse(cls.JAVA, name, text)
        if not required <= values.keys():
            missing = required - values.keys()
            name = next(each.wire_name for each in layout_of(cls) if each.attribute in missing)
            raise HeaderError(cls.JAVA, name, "is missing")
        return header

    def encode(self) -> dict[str, str]:
        """Return the fields as texts, without those that are None."""
        found = {}
        for field in layout_of(type(self)):
            value = getattr(self, field.attribute)
            if value is not None:
                found[field.wire_name] = field.show(value)
        return found


class HeaderForm:
    """A header that is sent again and again: what is always the same is written once.

    `encode` gives what the header would give with these values of its varying fields.
    """

    def __init__(self, header: Header, *varying: str) -> None:
        """Take a header, and the names of the attributes that vary; its own values there go."""
        fields = {field.attribute: field for field in layout_of(type(header))}
        self._same = header.encode()
        self._varying = [(fields[name].wire_name, fields[name].show) for name in varying]

    def encode(self, *values: str | int | bool) -> dict[str, str]:
        """Return the fields as texts; the values are in the order of the names."""
        written = dict(self._same)
        for (name, show), value in zip(self._varying, values, strict=True):
            written[name] = show(value)
        return written


_Parse = Callable[[str, str, str], Any]  # of header, name and text
# Attribute and parser by the name on the wire, and the attributes that must be there.
_Form = tuple[dict[str, tuple[str, _Parse]], frozenset[str]]


class FieldLayout(NamedTuple):
    """How a field is written."""

    attribute: str
    wire_name: str
    kind: type
    is_required: bool
    parse: _Parse
    show: Callable[[Any], str]


_layouts: dict[type[Header], tuple[FieldLayout, ...]] = {}
_forms: dict[type[Header], _Form] = {}


def layout_of(header: type[Header]) -> tuple[FieldLayout, ...]:
    """Return how the fields of a header are written."""
    known = _layouts.get(header)
    if known is None:
        known = _layouts[header] = tuple(_layout(header))
    return known


def _form_of(header: type[Header]) -> _Form:
    known = _forms.get(header)
    if known is None:
        layout = layout_of(header)
        by_name = {field.wire_name: (field.attribute, field.parse) for field in layout}
        required = frozenset(field.attribute for field in layout if field.is_required)
        known = _forms[header] = by_name, required
    return known


def _layout(header: type[Header]) -> Iterator[FieldLayout]:
    hints = typing.get_type_hints(header)
    for field in dataclasses.fields(header):
        hint = hints[field.name]
        if isinstance(hint, types.UnionType):
            (hint,) = (each for each in hint.__args__ if each is not type(None))
        parse, show = _KINDS[hint]
        name = field.metadata.get(_WIRE) or _camel_case(field.name)
        is_required = field.default is dataclasses.MISSING
        yield FieldLayout(field.name, name, hint, is_required, parse, show)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _parse_text(header: str, name: str, text: str) -> str:
    del header, name
    return text


def _parse_whole(header: str, name: str, text: str) -> int:
    if len(text) < _ALWAYS_FITS and text.isascii() and text.isdecimal():  # nearly all are
        return int(text)
    if _WHOLE.fullmatch(text):
        number = int(text)
        if -(1 << 63) <= number < 1 << 63:
            return number
    raise HeaderError(header, name, f"is {text!r:.40}, not a whole number of 64 bits")


def _parse_truth(header: str, name: str, text: str) -> bool:
    del header, name
    return text.lower() == "true"  # as Java has it


_KINDS: dict[type, tuple[_Parse, Callable[[Any], str]]] = {
    str: (_parse_text, str),
    int: (_parse_whole, str),
    bool: (_parse_truth, lambda value: "true" if value else "false"),
}
