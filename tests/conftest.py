"""What all tests share: Hypothesis profiles (50 examples while developing, 100 in CI), the settings
of every Spark that one of them starts (quick_spark), and the order in which workers take files.

`make unit` installs no Spark; the tests of connector and jobs, some of which need none, are passed
over then.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests import quick_spark

collect_ignore = [] if importlib.util.find_spec("pyspark") else ["connector", "spark_jobs"]

for name, value in quick_spark.environment().items():
    os.environ.setdefault(name, value)

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("ci", max_examples=100, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, suppress_health_check=SLOW_IS_FINE
)
if os.environ.get("ROCKETPY_SOAK"):
    settings.load_profile("soak")
else:
    settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Of a file the first that one of its tests has; files with none come last.
LONGEST_FIRST = ("slow", "interop", "crash", "spark")


@pytest.hookimpl(trylast=True)  # behind those that mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files with long tests first if workers share them: at the end no core waits for one."""
    if not hasattr(config, "workerinput"):
        return
    ranks: dict[Path, int] = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        rank = next((n for n, name in enumerate(LONGEST_FIRST) if name in marks), 99)
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])
