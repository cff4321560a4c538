"""RocketMQ for Spark people: a store byte-compatible with Apache RocketMQ, and a Spark connector.

This module is the public face; everything else is reached through `rocketpy.broker_core`,
`rocketpy.connector` and `rocketpy.spark_jobs`.
"""

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.embedded import Store, open

__version__ = "0.1.0"

__all__ = ["Store", "StoreConfig", "__version__", "open"]
