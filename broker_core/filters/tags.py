"""Tag filters as RocketMQ writes them: `*`, or names with `||` between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.java_hash import string_hash


@dataclass(frozen=True, slots=True)
class TagFilter:
    """Which tags are wanted; no names mean all messages, those without a tag included."""

    names: frozenset[str]

    @classmethod
    def parse(cls, expression: str) -> TagFilter:
        """Read an expression.

        Raises:
            MessageRefusedError: it names no tag.
        """
        if expression.strip() == "*":
            return cls(frozenset())
        names = frozenset(name.strip() for name in expression.split("||") if name.strip())
        if not names:
            raise MessageRefusedError(
                f"tags={expression!r}", "names no tag; give 'a || b', or '*' for all"
            )
        return cls(names)

    @property
    def takes_all(self) -> bool:
        """Whether every message passes."""
        return not self.names

    def codes(self) -> npt.NDArray[np.int64]:
        """Return the tag codes to look for in a consume queue; different tags may share one."""
        return np.array(sorted({string_hash(name) for name in self.names}), np.int64)
