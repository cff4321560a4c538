"""The redelivery job that is killed: `python -m tests.crash.redelivery_driver <task as JSON>`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import rocketpy
from rocketpy.spark_jobs.redelivery import Redelivery


def main(task: dict[str, Any]) -> None:
    job = Redelivery(
        spark=rocketpy.local_spark(2),
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
