"""What headers and bodies are: values with named attributes, made like dataclasses, but quickly.

There are some 150 of these classes, and each program that speaks with a cluster makes nearly all of
them when it starts. A plain dataclass has its constructor and its comparisons written and compiled
for itself, a millisecond for each class; these share the ones below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    # It is for type checkers, and Python 3.10 does not have it.
    def dataclass_transform(**_):  # noqa: D103
        return lambda cls: cls


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,)
)
class WireValue:
    """A value whose attributes are named when it is made, and do not change.

    A subclass is a dataclass to all who ask (`fields`, `replace`).
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)

    def __init__(self, **values: Any) -> None:
        shape = _shape_of(type(self))
        if not shape.required <= values.keys() <= shape.names.keys():
            raise TypeError(_what_is_wrong(type(self), shape, values))
        for name, make in shape.factories:
            if name not in values:
                values[name] = make()
        self.__dict__.update(values)  # what is not there is the class's default

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _values_of(self) == _values_of(other)

    def __hash__(self) -> int:
        return hash(_values_of(self))

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in _shape_of(type(self)).names)
        return f"{type(self).__qualname__}({', '.join(shown)})"


class _Shape(NamedTuple):
    """The attributes of a class: all in order, those that must be named, those that are made."""

    names: dict[str, None]
    required: frozenset[str]
    factories: tuple[tuple[str, Callable[[], Any]], ...]


_shapes: dict[type[WireValue], _Shape] = {}


def _shape_of(cls: type[WireValue]) -> _Shape:
    known = _shapes.get(cls)
    if known is None:
        known = _shapes[cls] = _new_shape(cls)
    return known


def _new_shape(cls: type[WireValue]) -> _Shape:
    made: Any = cls  # a dataclass, by __init_subclass__
    fields, missing = dataclasses.fields(made), dataclasses.MISSING
    return _Shape(
        dict.fromkeys(field.name for field in fields),
        frozenset(
            field.name
            for field in fields
            if field.default is missing and field.default_factory is missing
        ),
        tuple(
            (field.name, field.default_factory)
            for field in fields
            if field.default_factory is not missing
        ),
    )


def _values_of(value: object) -> tuple[Any, ...]:
    assert isinstance(value, WireValue)
    return tuple([getattr(value, name) for name in _shape_of(type(value)).names])


def _what_is_wrong(cls: type[WireValue], shape: _Shape, values: dict[str, Any]) -> str:
    unknown = [name for name in values if name not in shape.names]
    missing = [name for name in shape.names if name in shape.required and name not in values]
    what = f"nothing is called {unknown[0]!r}" if unknown else f"{', '.join(missing)} must be given"
    return f"{cls.__qualname__}: {what}"
