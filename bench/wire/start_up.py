"""How long it takes until local_broker() serves, in a new process, its imports included."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import time
began = time.perf_counter()
from rocketpy.broker_core.local import local_broker
imported = time.perf_counter()
with local_broker():
    ready = time.perf_counter()
print(ready - began, ready - imported)
"""


def seconds(rounds: int) -> tuple[float, float]:
    """Return the least seconds until it serves, and those of them after the imports."""
    found = [_once() for _ in range(rounds)]
    return min(found)


def _once() -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE, text=True
    )
    whole, own = map(float, done.stdout.split())
    return whole, own
