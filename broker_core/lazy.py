"""Attributes that are computed when they are first asked for, and kept; names of packages, too.

lazy_property is functools.cached_property without the lock that it has before Python 3.12. That
lock is one for all objects: a child that is forked while another thread computes a value waits for
it for ever. Two threads that ask at once may both compute it; one of the values is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):
    """Decorates a method without arguments; its value replaces it in the object."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy_property[_Value]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> _Value: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> lazy_property[_Value] | _Value:
        if instance is None:
            return self
        # It has no __set__, so that from now on the object's own value is found before it.
        value: _Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the __getattr__ of a package whose names are imported when they are first asked for.

    `homes` has for each module of the package the names that it gives, with blanks between them.
    Who needs one module of the package then does not wait for what the others import.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return get
