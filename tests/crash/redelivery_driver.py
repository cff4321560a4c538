"""The redelivery job that is killed: `python -m tests.crash.redelivery_driver <task as JSON>`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rocketpy.spark_jobs.redelivery import Redelivery


def spark() -> SparkSession:
    """Return a Spark without Delta, which takes seconds to find its jars."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def main(task: dict[str, Any]) -> None:
    job = Redelivery(
        spark=spark(),
        path=Path(task["path"]),
        once=task["once"],
        now_ms=task["now_ms"],
        interval_s=0.05,
        batch_rows=task["batch_rows"],
        task_rows=task["batch_rows"] // 2,
        lease_ms=1500,
    )
    print(job.run())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
