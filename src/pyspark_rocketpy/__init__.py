"""What Spark finds when it looks through the modules named `pyspark_*` for data sources."""

from rocketpy.connector.source import RocketPyDataSource as DefaultSource

__all__ = ["DefaultSource"]
