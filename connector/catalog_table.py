"""Tables of Spark's catalog: `CREATE TABLE … USING rocketpy OPTIONS (…)`.

When such a table is made, Spark asks a Python source for its columns, with the options and with
what the catalog says of the table. When it is read, Spark 4.2 hands over the columns alone. So the
options travel with them, in the metadata of the first column.

Two kinds of tables cannot be read. For a table that is made with a list of columns Spark never
asks, so its options cannot travel. And if the session's catalog is not Spark's own, such as
Delta's, Spark reads no table of a Python source at all. Temporary views work in both cases: see
docs/guides/sql.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql.types import StructField, StructType

from rocketpy.connector.options import OptionError

_KEY = "rocketpy.options"
_GIVEN = "option."  # the catalog has each option twice: as a property too, among others
_HELP = "see docs/guides/sql.md"


def options_of_new_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return what a user gave with CREATE TABLE; None if no table is being made."""
    if "provider" not in options or "owner" not in options:
        return None
    given = {
        name.removeprefix(_GIVEN): value
        for name, value in options.items()
        if name.startswith(_GIVEN)
    }
    if "path" in options:
        given["path"] = _absolute(options["path"])
    return given


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a new table, with its options in them."""
    first, *rest = schema.fields
    metadata = {_KEY: json.dumps(dict(options), sort_keys=True)}
    carrier = StructField(first.name, first.dataType, first.nullable, metadata)
    return StructType([carrier, *rest])


def options_of_read(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a read: its own, over those of the table, if it is one.

    Raises:
        OptionError: it is a table, and its columns carry no options.
    """
    given = {name.lower(): value for name, value in options.items()}
    if "path" in given or "namesrvaddr" in given:
        return given  # no table: columns of one may have been given to another read
    carried = [field.metadata[_KEY] for field in schema if _KEY in (field.metadata or {})]
    if carried:
        return {**json.loads(carried[0]), **given}
    if not given:
        reason = "is missing: Spark keeps no options of a table that has a list of columns; make "
        remedy = f"it without the list, or make a temporary view ({_HELP})"
        raise OptionError("path", reason + remedy)
    return given


def refuse_table(options: Mapping[str, str]) -> None:
    """Refuse to write to a table: what Spark hands over then names no store.

    Raises:
        OptionError: there is neither a path nor a cluster.
    """
    if not {"path", "namesrvaddr"} & {name.lower() for name in options}:
        reason = "is missing; give it, or 'namesrvAddr'. In SQL a table cannot be written to: "
        raise OptionError("path", f"{reason}INSERT INTO a temporary view ({_HELP})")


def _absolute(path: str) -> str:
    """Return the folder that a location of the catalog names: a URI, or as the user wrote it."""
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" else str(Path(path).absolute())
