"""The options of `format("rocketpy")`, checked before a query starts.

Spark hands option names over in lower case; messages name them as the user writes them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from rocketpy.broker_core.errors import RocketPyError

_NAMES = {name.lower(): name for name in ("path", "topic", "columns")}


class OptionError(RocketPyError):
    """Is raised for an option that is missing, unknown or wrong; says the remedy."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(option, reason)
        self.option, self.reason = option, reason

    def __str__(self) -> str:
        return f"Option '{self.option}' of format 'rocketpy': {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a read was asked for."""

    path: str
    topic: str
    columns: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read Spark's options.

        Raises:
            OptionError: one is unknown or missing.
        """
        for name in options:
            if name.lower() not in _NAMES:
                near = difflib.get_close_matches(name.lower(), _NAMES, n=1)
                known = ", ".join(_NAMES.values())
                hint = f"did you mean '{_NAMES[near[0]]}'?" if near else f"known are {known}"
                raise OptionError(name, f"there is no such option; {hint}")
        for name in ("path", "topic"):
            if not options.get(name):
                raise OptionError(name, f"is missing; give .option('{name}', ...)")
        return cls(path=options["path"], topic=options["topic"], columns=options.get("columns"))
