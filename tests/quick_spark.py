"""How every Spark that a test starts comes up soon: by the environment that its JVM is started in.

Half of what such a JVM does in its life is to compile what it will not run again, and to load and
check the same ten thousand classes. So only the first compiler runs, and the classes come from an
archive that `make test` makes once for an environment: `python -m tests.quick_spark` runs what most
tests do, and the JVM writes its classes at its end.

Spark has its Python processes import PySpark from a zip file in its home, which has no compiled
modules: the planner of each stream would compile some hundred of them, for a second of CPU. The
home that tests give it has no such file, so that these processes import what is installed.

The JVM takes an archive only if it was made by the same Java with the same class path; else it
starts without one, as it does where none was made. Of folders on the class path it takes empty ones
alone: the one for Spark's settings is, and settings that tests need for all are here.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import rocketpy

_FOLDER = Path(sys.prefix) / "quick-spark"
_SETTINGS = _FOLDER / "conf"
_ARCHIVE = _FOLDER / "classes.jsa"
_HOME = _FOLDER / "home"
# The first compiler alone gets 48 MiB for its code, of which one notebook fills 44: then the JVM
# begins to look for code to throw away. Warnings of archives that do not fit would be printed among
# what programs print.
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xlog:disable"
# Tests have few rows. For them Spark would make and compile classes of its own for each query, and
# run each part of a query as a job of its own, to choose the next one by its size: without both a
# small backfill takes a fifth less CPU. A stream with nothing to do would ask for news each 10 ms.
_FEW_ROWS = " ".join(
    f"-Dspark.sql.{setting}"
    for setting in (
        "adaptive.enabled=false",
        "codegen.wholeStage=false",
        "codegen.factoryMode=NO_CODEGEN",
        "streaming.pollingDelay=100",
    )
)


def environment() -> Mapping[str, str]:
    """Return the variables by which each Spark that is started starts quickly."""
    _SETTINGS.mkdir(parents=True, exist_ok=True)
    home = _home_without_zip()
    return {
        **({"SPARK_HOME": str(home)} if home is not None else {}),
        "SPARK_CONF_DIR": str(_SETTINGS),
        "SPARK_LAUNCHER_OPTS": QUICK,
        "SPARK_SUBMIT_OPTS": f"{jvm_options()} {_FEW_ROWS}",
    }


def jvm_options() -> str:
    """Return the options by which any JVM of Spark's starts quickly: executors and masters too."""
    return f"{QUICK} -XX:SharedArchiveFile={_ARCHIVE}" if _ARCHIVE.exists() else QUICK


def _home_without_zip() -> Path | None:
    """Return a home of Spark that has all but its Python; None where no Spark is installed."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    installed = Path(found.origin).parent
    _HOME.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars", "sbin"):
        with suppress(FileExistsError):  # another worker was first
            (_HOME / name).symlink_to(installed / name)
    return _HOME


def _make_archive() -> None:
    """Run what tests do with Spark, and have the JVM keep its classes; Delta's JARs are fetched."""
    made = _ARCHIVE.with_suffix(".new")
    made.unlink(missing_ok=True)
    os.environ |= environment()
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK} -XX:ArchiveClassesAtExit={made}"
    with tempfile.TemporaryDirectory() as folder:
        jvm = _work(Path(folder))
    jvm.stdin.close()  # it ends then
    jvm.wait()
    if made.exists():
        made.replace(_ARCHIVE)


def _work(folder: Path) -> Any:
    """Copy from topic to topic and into a Delta table; return the process of the JVM."""
    spark = rocketpy.local_spark(2)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc
    path = str(folder / "store")
    with rocketpy.open(path) as store:
        store.create_topic("orders", 2)
        for number in range(10):
            store.send("orders", str(number), keys=str(number))
    read = {"path": path, "topic": "orders"}
    orders = spark.read.format("rocketpy").options(**read).load()
    orders.groupBy("queue_id").count().orderBy("queue_id").collect()
    orders.select("body").write.format("delta").save(str(folder / "table"))
    orders.createOrReplaceTempView("orders")
    spark.sql("SELECT keys, max(queue_offset) FROM orders GROUP BY keys").toArrow()
    copied = {"path": path, "topic": "copies"}
    orders.select("body").write.format("rocketpy").options(**copied).mode("append").save()
    for name, target in (("delta", {"path": str(folder / "table")}), ("rocketpy", copied)):
        stream = spark.readStream.format("rocketpy").options(**read).load().select("body")
        writer = stream.writeStream.format(name).options(**target)
        writer = writer.option("checkpointLocation", str(folder / name))
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    return jvm


if __name__ == "__main__":
    _make_archive()
