"""An SQL92 filter: its text, the properties that it looks at, and which messages pass.

As Apache's `SqlFilter` it passes a message only when the expression is true: not when it is false,
nor unknown, nor when it cannot be evaluated for this message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters.evaluation import Columns, Outcome, evaluate, matches
from rocketpy.broker_core.filters.parser import parse
from rocketpy.broker_core.filters.syntax import property_names

_parsed = lru_cache(maxsize=256)(parse)


class SqlFilter:
    """A parsed filter; a value, which travels as its text."""

    def __init__(self, text: str) -> None:
        """Read a filter as Apache's broker does, which ignores what follows a whole expression.

        Raises:
            FilterSyntaxError: it is not understood; points at the mistake.
        """
        self.text = text
        self._node, self._end = _parsed(text)
        self.names: frozenset[str] = property_names(self._node)

    @classmethod
    def of(cls, text: str) -> SqlFilter:
        """Read a filter that somebody typed: text that would be ignored is a mistake.

        Raises:
            FilterSyntaxError: it is not understood, or something follows it.
        """
        found = cls(text)
        if found.ignored and not found.ignored.startswith("--"):  # a comment without a line end
            reason = "wanted is AND, OR, a comparison, or the end; Apache would ignore what follows"
            raise FilterSyntaxError(text, found._end, reason)
        return found

    @property
    def ignored(self) -> str:
        """What follows the expression."""
        return self.text[self._end :]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqlFilter) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"SqlFilter({self.text!r})"

    def __reduce__(self) -> tuple[type[SqlFilter], tuple[str]]:
        return SqlFilter, (self.text,)

    def passes(self, columns: Columns, rows: int) -> pa.BooleanArray:
        """Return which of `rows` messages pass; each property is asked for once, by its name."""
        return matches(self._node, self._asked(columns), rows)

    def passing(self, block: RecordBlock) -> RecordBlock:
        """Return the records that pass; of the others nothing but named properties is decoded."""
        passes = self.passes(block.properties.get, len(block))
        rows = np.flatnonzero(passes.to_numpy(zero_copy_only=False))
        return block if len(rows) == len(block) else block.take(rows)

    def outcome(self, columns: Columns) -> Outcome:
        """Return what the expression yields for each message: more than whether it passes."""
        return evaluate(self._node, self._asked(columns))

    def _asked(self, columns: Columns) -> Columns:
        return {name: _as_java_sees(columns(name)) for name in sorted(self.names)}.__getitem__


def in_maps(properties: pa.Array) -> Callable[[str], pa.Array]:
    """Return how to find single properties in a column of maps."""
    return lambda name: pc.map_lookup(properties, pa.scalar(name), "last")


def _as_java_sees(texts: pa.Array) -> pa.Array:
    """Return the texts without empty ones: to Apache's decoder these are no properties."""
    lengths = pc.binary_length(texts)
    if pc.min(lengths).as_py() != 0:
        return texts
    return pc.if_else(pc.greater(lengths, 0), texts, None)
