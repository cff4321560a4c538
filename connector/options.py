"""How options of `format("rocketpy")` are declared, read and refused.

Spark hands option names over in lower case; messages name them as the user writes them. Each option
is declared once, in tables of `Option`; a test compares docs/options.md with them.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.store_path import StorePathError, store_path
from rocketpy.connector.foreign_options import advice_on

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_TABLE_PROPERTIES = (
    "comment",
    "external",
    "is_managed_location",
    "location",  # what `path` says, or a folder that Spark makes up: nothing is ever there
    "owner",
    "provider",
)
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


class OptionError(RocketPyError):
    """Is raised for an option that is missing, unknown or wrong; says the remedy."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(option, reason)
        self.option, self.reason = option, reason

    def __str__(self) -> str:
        return f"Option '{self.option}' of format 'rocketpy': {self.reason}"


class Option(NamedTuple):
    """What a user may give, as the docs say it."""

    name: str
    values: str
    default: str
    meaning: str


def _without_table_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return options without what Spark adds to those of a table in its catalog.

    These are who owns it, its format, its location, and each option once more as `option.<name>`.
    """
    if "provider" in given:
        added = (*_TABLE_PROPERTIES, *(f"option.{name}" for name in given))
        return {name: value for name, value in given.items() if name not in added}
    location, path = given.get("location"), given.get("path")
    if location is None:
        return dict(given)
    if path is None or store_path(location).absolute() != store_path(path).absolute():
        reason = f"is '{location}', but the store is named by 'path'; leave it out"
        raise OptionError("location", reason)
    return {name: value for name, value in given.items() if name != "location"}


class Given:
    """The options that a user gave, read by their declared names."""

    def __init__(self, options: Mapping[str, str], declared: Iterable[Option]) -> None:
        self._names = {option.name.lower(): option.name for option in declared}
        given = {name.lower(): value for name, value in options.items()}
        self._values = _without_table_properties(given)
        for name in self._values:
            if name not in self._names:
                raise self._unknown(name)

    def _unknown(self, name: str) -> OptionError:
        advice = advice_on(name, self._names.values())
        if advice is not None:
            return OptionError(advice.option, f"there is no such option; {advice.remedy}")
        return OptionError(name, f"there is no such option; {self._nearest(name)}")

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._names, n=1)
        if near:
            return f"did you mean '{self._names[near[0]]}'?"
        return f"known are {', '.join(sorted(self._names.values()))}"

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def knows(self, name: str) -> bool:
        """Whether there is such an option, given or not."""
        return name.lower() in self._names

    def names(self) -> list[str]:
        """Return which options were given, as they are declared."""
        return [self._names[name] for name in self._values]

    def text(self, name: str) -> str | None:
        """Return an option as it was given; None without it, or if it is empty."""
        assert name.lower() in self._names, name
        return self._values.get(name.lower(), "").strip() or None

    def required(self, name: str) -> str:
        """Return an option that must be given."""
        value = self.text(name)
        if value is None:
            raise OptionError(name, f"is missing; give .option('{name}', ...)")
        return value

    def folder(self, name: str) -> str:
        """Return an option that must be given and is the folder of a store, absolute.

        It is read on the driver, and is the same in every process from there on.
        """
        try:
            return str(store_path(self.required(name)).absolute())
        except StorePathError as cause:
            raise OptionError(name, f"is '{cause.path}': {cause.reason}") from cause

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        """Return an option that is one of some words, as they are spelt."""
        value = self.text(name)
        if value is None:
            return None
        known = {choice.lower(): choice for choice in choices}
        if value.lower() not in known:
            raise OptionError(name, f"is '{value}'; give {' or '.join(known.values())}")
        return known[value.lower()]

    def flag(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in _TRUE + _FALSE:
            raise OptionError(name, f"is '{value}'; give true or false")
        return value.lower() in _TRUE

    def count(self, name: str) -> int | None:
        """Return an option that is a whole number of at least 1."""
        value = self.text(name)
        if value is None:
            return None
        if not value.isascii() or not value.isdigit() or int(value) < 1:
            raise OptionError(name, f"is '{value}'; give a whole number of at least 1")
        return int(value)

    def physical_offset(self, name: str) -> int | None:
        """Return an option that is a physical offset."""
        value = self.text(name)
        if value is not None and not (value.isascii() and value.isdigit()):
            raise OptionError(name, f"is '{value}'; give a byte of the log, 0 or more")
        return int(value) if value is not None else None

    def size(self, name: str) -> int | None:
        """Return an option that is a number of bytes."""
        value = self.text(name)
        if value is None:
            return None
        match = re.fullmatch(r"([1-9]\d*)\s*([kmg]?)b?", value.lower())
        if match is None:
            raise OptionError(name, f"is '{value}'; give a number of bytes, or one like 64m")
        return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]

    def seconds(self, name: str, default: float) -> float:
        """Return an option that is a time with its unit."""
        value = self.text(name)
        if value is None:
            return default
        match = re.fullmatch(r"(\d+)\s*(ms|s|m|h)", value.lower())
        if match is None:
            reason = f"is '{value}'; give a time with its unit, such as 500ms, 30s, 5m"
            raise OptionError(name, reason)
        return int(match[1]) * _UNITS_S[match[2]]

    def json(self, name: str, example: str) -> object:
        """Return an option that is JSON."""
        value = self.required(name)
        try:
            return json.loads(value)
        except ValueError as cause:
            raise OptionError(name, f"is no JSON ({cause}); give {example}") from cause

    def refuse_together(self, *names: str) -> None:
        """Raise if more than one of these options was given."""
        given = [name for name in names if name in self]
        if len(given) > 1:
            raise OptionError(given[1], f"cannot be given together with '{given[0]}'")
