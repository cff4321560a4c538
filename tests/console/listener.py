"""What a listener of Spark's queries tells, without Spark: the families are the real ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rocketpy.broker_core.metrics.listening import TextServer
from rocketpy.broker_core.metrics.writing import block
from rocketpy.connector.lag import QueryReading
from rocketpy.connector.metrics import METRICS, _Query

NASTY = "\"'><img src=x onerror=\"document.title='stolen'\">"


def queries(place: str) -> list[_Query]:
    """Return one that runs, one that failed, and one whose name is nasty."""
    return [
        _Query(
            *("billing", "id-1", "run-1"),
            batches=12,
            rows=1200,
            lag={"orders": 34},
            input_rate=100.0,
            processed_rate=90.5,
            duration_s=1.25,
            last_batch_s=time.time(),
            reads=(QueryReading(place, "orders", "billing", "billing-1"),),
        ),
        _Query("broken", "id-2", "run-2", is_active=False, has_failed=True),
        _Query(NASTY, "id-3", "run-3", is_active=False),
    ]


@contextmanager
def listener(told: list[_Query]) -> Iterator[str]:
    """Have an address at which queries are told, as they are at each scrape."""

    def scrape(_: str) -> bytes:
        return "".join(block(family, told, {}) for family in METRICS).encode()

    server = TextServer(scrape, port=0)
    server.start()
    try:
        yield server.address
    finally:
        server.stop()
