"""What a Delta table says of itself, without a Spark job: asked of Delta's own log in the JVM.

Delta's Python API gives no transactions, and no properties and commits without a job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from rocketpy.broker_core.lazy import lazy_property

_MOST_COMMITS = 200  # that are looked through


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with a note in its userMetadata, and how much it wrote."""

    version: int
    note: Mapping[str, Any]
    rows: int
    size_bytes: int


class DeltaState:
    """A table as it is now."""

    def __init__(self, spark: SparkSession, log: Any) -> None:
        self._spark, self._log = spark, log
        # Scala's defaults, as seen from here: the newest state, whatever was looked at before.
        defaults = (getattr(log, f"update$default${number}")() for number in (1, 2, 3))
        self._snapshot = log.update(*defaults)

    @property
    def version(self) -> int:
        """The number of the newest commit."""
        return int(self._snapshot.version())

    @property
    def id(self) -> str:
        """What tells this table from one that is made later in its place."""
        return str(self._snapshot.metadata().id())

    def transaction(self, app_id: str) -> int | None:
        """Return the last version that was written by this name, as Delta itself knows it."""
        found = self._snapshot.transactions().get(app_id)
        return int(found.get()) if found.isDefined() else None

    def property(self, name: str) -> str | None:
        """Return a property of the table."""
        found = self._snapshot.metadata().configuration().get(name)
        return str(found.get()) if found.isDefined() else None

    @lazy_property
    def schema(self) -> StructType:
        """The columns."""
        return StructType.fromJson(json.loads(self._snapshot.schema().json()))

    @lazy_property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that it is partitioned by."""
        text = self._snapshot.metadata().partitionColumns().mkString(",")
        return tuple(name for name in text.split(",") if name)

    def commits(self) -> Iterator[Commit]:
        """Yield commits that have a note, the newest first, as far as the log goes back."""
        for version in range(self.version, max(self.version - _MOST_COMMITS, -1), -1):
            info = self._commit_info(version)
            if info is None:
                return
            metrics = info.get("operationMetrics", {})
            rows, size = (int(metrics.get(name, 0)) for name in ("numOutputRows", "numOutputBytes"))
            note = _note(info.get("userMetadata"))
            if note:
                yield Commit(version, note, rows, size)

    def _commit_info(self, version: int) -> dict[str, Any] | None:
        jvm = self._spark._jvm
        assert jvm is not None
        names = jvm.org.apache.spark.sql.delta.util.FileNames
        path = names.unsafeDeltaFile(self._log.logPath(), version)
        hadoop = self._spark._jsc.hadoopConfiguration()
        try:
            lines = str(self._log.store().read(path, hadoop).mkString("\n")).splitlines()
        except Py4JError:  # Delta removes old ones
            return None
        for line in lines:
            action: dict[str, Any] = json.loads(line)
            if "commitInfo" in action:
                info: dict[str, Any] = action["commitInfo"]
                return info
        return {}


def _note(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:  # of another writer
        return {}
    return found if isinstance(found, dict) else {}
