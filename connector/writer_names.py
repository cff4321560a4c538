"""The names under which the store's ledger knows who writes batches through this format.

What the sink notes and what a job looks up must be one name: both take it from here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class WriterName(NamedTuple):
    """A name, and the one that an earlier version gave the same writer."""

    name: str
    former: str | None = None


def writer_name(kind: Literal["query", "app"], id_: str, topic: str | None) -> WriterName:
    """Return the name of a streaming query, or of an application that numbers its writes itself.

    One writer may write to several topics of a store, and has its own numbers for each. Without a
    topic the rows name theirs.
    """
    plain = f"{kind} {id_}"
    # Earlier versions knew queries by their id alone.
    return WriterName(f"{plain} topic {topic or '*'}", plain if kind == "query" else None)
