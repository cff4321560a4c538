"""The boundary between users and a store: every public method of a store goes through it.

B1  An argument that is not of the kind that its annotation says is refused before anything is done.
B2  What the system says of files comes as an error of ours, with what to do.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rocketpy.broker_core.errors import DiskFullError, MessageRefusedError, StoreError

_Side = TypeVar("_Side")
_Item = TypeVar("_Item")

_TO_READ_ONLY = "to look at it without changing it, open it with read_only=True"
_REMEDIES = {
    errno.EACCES: f"give this user the right to do so; {_TO_READ_ONLY}",
    errno.EPERM: f"give this user the right to do so; {_TO_READ_ONLY}",
    errno.EROFS: f"mount it for writing; {_TO_READ_ONLY}",
    errno.EEXIST: "a store is a folder, and there is a file: give another path",
    errno.ENOTDIR: "a store is a folder, and there is a file: give another path",
    errno.EMFILE: "this process has too many files open: raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many files open: raise its limit",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.EIO: "the disk fails: look at the system's log, and copy what can still be read",
}


class StoreAccessError(StoreError):
    """Is raised when the system does not let us read or change the files of a store."""

    def __init__(self, path: Path | str, cause: str, remedy: str) -> None:
        super().__init__(path, cause, remedy)
        self.path, self.cause, self.remedy = path, cause, remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}; {self.remedy}"


def as_store_error(cause: OSError, store: Path) -> StoreError:
    """Return what the system said of a file as an error of ours."""
    path, number = cause.filename or store, cause.errno or 0
    if number in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(path, 0, os.strerror(number))
    remedy = _REMEDIES.get(number, f"look whether the store {store} is where it should be")
    return StoreAccessError(path, cause.strerror or str(cause), remedy)


# --- arguments --------------------------------------------------------------------------------


class _Kind(NamedTuple):
    wanted: str
    holds: Callable[[Any], bool]
    plain: tuple[type, ...] = ()  # fit always: what most calls give, known without a further look


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_body(value: object) -> bool:
    return isinstance(value, (str, bytes, bytearray, memoryview))


def _is_whole(value: object) -> bool:
    return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, bool))


def _are_names(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, (Sequence, set, frozenset)) and all(map(_is_text, value))
    )


def _maps_names(value: object) -> bool:
    # Who takes it names the value. A dict is asked for first: to ask for a Mapping takes long.
    return isinstance(value, (dict, Mapping)) and all(map(_is_text, value))


def _maps_numbers(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_whole, (*value, *value.values())))


_NAMES = _Kind("a str or a list of them", _are_names, (str,))
# By the annotation of a parameter, without `| None`. What is not here is checked where it is used.
KINDS = {
    "str": _Kind("a str", _is_text, (str,)),
    "int": _Kind("a whole number", _is_whole, (int,)),
    "float": _Kind("a number", lambda value: isinstance(value, (int, float))),
    "bytes | str": _Kind("bytes or str", _is_body, (bytes, str)),
    "str | Sequence[str]": _NAMES,
    "Sequence[str] | str": _NAMES,
    "Mapping[str, str]": _Kind("a dict of str", _maps_names),
    "Mapping[int, int]": _Kind("a dict of queue ids and offsets", _maps_numbers),
    "Offsets": _Kind(
        "an offset, or a dict of queue ids and offsets",
        lambda value: _is_whole(value) or _maps_numbers(value),
    ),
}


class _Check(NamedTuple):
    name: str
    kind: _Kind
    plain: frozenset[type]

    def refuse_unless_fit(self, value: object) -> None:
        if not self.kind.holds(value):
            shown = f"{self.name}={value!r}"
            raise MessageRefusedError(f"{shown:.80}", f"give {self.kind.wanted}")


def _checks_of(method: Callable[..., Any]) -> dict[str, _Check | None]:
    """Return the check of each parameter after `self`, None for those that have none."""
    found: dict[str, _Check | None] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        annotation = str(parameter.annotation)
        kind = KINDS.get(annotation.removesuffix(" | None"))
        if kind is None:
            found[parameter.name] = None
            continue
        may_be_none = annotation.endswith(" | None") or parameter.default is None
        plain = {*kind.plain, type(None)} if may_be_none else {*kind.plain}
        found[parameter.name] = _Check(parameter.name, kind, frozenset(plain))
    return found


# --- methods ----------------------------------------------------------------------------------


def guarded(side: type[_Side]) -> type[_Side]:
    """Have every public method of a side of a store keep B1 and B2."""
    for name, method in list(vars(side).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(side, name, _guarded_method(method))
    return side


def _guarded_method(method: Callable[..., Any]) -> Callable[..., Any]:
    checks = _checks_of(method)
    plain = {(check.name, kind) for check in checks.values() if check for kind in check.plain}

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The types of most calls are known: one look into a set is enough.
        if not (
            plain.issuperset(zip(checks, map(type, args)))  # noqa: B905  stops with the shorter
            and plain.issuperset(zip(kwargs, map(type, kwargs.values())))  # noqa: B905
        ):
            for name, value in (*zip(checks, args, strict=False), *kwargs.items()):
                check = checks.get(name)
                if check is not None and type(value) not in check.plain:
                    check.refuse_unless_fit(value)
        try:
            return method(self, *args, **kwargs)
        except OSError as cause:
            raise as_store_error(cause, self.path) from cause

    return call


def guarded_items(items: Iterable[_Item], store: Path) -> Iterator[_Item]:
    """Yield what is read lazily, long after the method that returned it: B2 holds for it too."""
    try:
        yield from items
    except OSError as cause:
        raise as_store_error(cause, store) from cause
