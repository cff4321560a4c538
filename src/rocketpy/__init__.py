"""RocketMQ for Spark people: a store byte-compatible with Apache RocketMQ, and a Spark connector.

This module is the public face; everything else is reached through `rocketpy.broker_core`,
`rocketpy.connector` and `rocketpy.spark_jobs`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketpy.broker_core.config import StoreConfig
    from rocketpy.broker_core.embedded import Store, open
    from rocketpy.connector.failed_rows import send_back
    from rocketpy.connector.lag import LagListener, messages_behind
    from rocketpy.connector.metrics import Metrics
    from rocketpy.connector.registration import register
    from rocketpy.connector.session import local_spark
    from rocketpy.spark_jobs import analytics
    from rocketpy.spark_jobs.backfill import backfill
    from rocketpy.spark_jobs.restore import restore

__version__ = "0.1.0"

__all__ = [
    "LagListener",
    "Metrics",
    "Store",
    "StoreConfig",
    "__version__",
    "analytics",
    "backfill",
    "local_spark",
    "messages_behind",
    "open",
    "register",
    "restore",
    "send_back",
]

# Imported when first asked for: the command line and Spark's look for data sources import this
# module, and pyarrow takes a third of a second.
_HOMES = {
    "LagListener": "rocketpy.connector.lag",
    "Metrics": "rocketpy.connector.metrics",
    "Store": "rocketpy.broker_core.embedded",
    "StoreConfig": "rocketpy.broker_core.config",
    "backfill": "rocketpy.spark_jobs.backfill",
    "local_spark": "rocketpy.connector.session",
    "messages_behind": "rocketpy.connector.lag",
    "open": "rocketpy.broker_core.embedded",
    "register": "rocketpy.connector.registration",
    "restore": "rocketpy.spark_jobs.restore",
    "send_back": "rocketpy.connector.failed_rows",
}
_MODULES = {"analytics": "rocketpy.spark_jobs.analytics"}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'rocketpy' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
