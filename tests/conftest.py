"""What all tests share: Hypothesis profiles (50 examples while developing, 500 in CI), and the
settings of every Spark that one of them starts (spark_conf).

`make unit` installs no Spark; the tests of connector and jobs, some of which need none, are passed
over then.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from hypothesis import HealthCheck, settings

collect_ignore = [] if importlib.util.find_spec("pyspark") else ["connector", "spark_jobs"]

os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, suppress_health_check=SLOW_IS_FINE
)
if os.environ.get("ROCKETPY_SOAK"):
    settings.load_profile("soak")
else:
    settings.load_profile("ci" if os.environ.get("CI") else "dev")
