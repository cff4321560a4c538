"""The driver that is killed: `python -m tests.spark_jobs.replay_driver <store>` replays `g`."""

from __future__ import annotations

import sys

import rocketpy
from rocketpy.spark_jobs import replay_run
from rocketpy.spark_jobs.dead_letters import DeadLetters
from rocketpy.spark_jobs.replay import replay

CHUNK_ROWS = 10


def main(path: str) -> None:
    replay_run.CHUNK_ROWS = CHUNK_ROWS
    replay(rocketpy.local_spark(2), DeadLetters(path=path, group="g"))


if __name__ == "__main__":
    main(sys.argv[1])
