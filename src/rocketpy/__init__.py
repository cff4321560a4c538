"""RocketMQ for Spark people: a store byte-compatible with Apache RocketMQ, and a Spark connector.

A store is a folder; no server runs, and any number of processes may have it open:

    import rocketpy

    store = rocketpy.open("shop-store")                     # made if it is missing
    store.create_topic("orders", queues=4)
    store.send("orders", b"1 euro", tags="paid", keys="o-1", sharding_key="customer-7")
    store.append("orders", [{"body": "2 euros"}])           # many at once; an Arrow table does, too
    store.read("orders", tags="paid").read_all()            # a pyarrow.Table
    store.query("orders", key="o-1")

In Spark it is a format, with nothing to register:

    spark = rocketpy.local_spark()                          # or a session of your own
    spark.read.format("rocketpy").option("topic", "orders").load("shop-store")
    spark.readStream.format("rocketpy").option("topic", "orders").load("shop-store")

A cluster of RocketMQ, Apache's or ours, is reached through its name servers:

    with rocketpy.connect("ns1:9876;ns2:9876") as mq:       # `async with rocketpy.aio.connect(...)`
        mq.send("orders", b"1 euro", tags="paid", keys="o-1")
        listener = mq.listen("billing", "orders", print)    # or: for message in mq.consumer(...)
        mq.admin.offsets.lag("billing").messages            # topics, groups, lag, resets, brokers

    open, Store, StoreConfig                    the store: help(rocketpy.Store) has all it can do
    connect, BlockingClient, aio                the client of clusters, blocking and for asyncio
    Credentials, ClientTls                      the way into a protected cluster
    Later, Sql, BufferLimits                    what handlers answer, what consumers want
    local_spark, register                       sessions
    read, count                                 batch reads of few columns; how many there are
    local_broker                                a name server and brokers, for tests
    backfill, restore, send_back                jobs: into Delta and back; rows that failed
    analytics                                   what a store tells, as DataFrames
    messages_behind, LagListener, Metrics       how far queries are behind
    BatchSpans                                  spans of OpenTelemetry for micro-batches
    errors                                      every error; all are errors.RocketPyError

Everything else is reached through `rocketpy.broker_core`, `rocketpy.connector` and
`rocketpy.spark_jobs`, and may change. On the command line: `rocketpy --help`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketpy import aio, errors
    from rocketpy.broker_core.client.consuming.process_queue import BufferLimits
    from rocketpy.broker_core.client.consuming.subscriptions import Sql
    from rocketpy.broker_core.client.consuming.verdicts import Later
    from rocketpy.broker_core.client.credentials import Credentials
    from rocketpy.broker_core.client.faces.blocking import BlockingClient, connect
    from rocketpy.broker_core.config import StoreConfig
    from rocketpy.broker_core.embedded import Store, open
    from rocketpy.broker_core.local import local_broker
    from rocketpy.broker_core.net.client_tls import ClientTls
    from rocketpy.connector.batch_spans import BatchSpans
    from rocketpy.connector.failed_rows import send_back
    from rocketpy.connector.lag import LagListener, messages_behind
    from rocketpy.connector.metrics import Metrics
    from rocketpy.connector.narrow_reads import count, read
    from rocketpy.connector.registration import register
    from rocketpy.connector.session import local_spark
    from rocketpy.spark_jobs import analytics
    from rocketpy.spark_jobs.backfill import backfill
    from rocketpy.spark_jobs.restore import restore

__version__ = "0.1.0"

__all__ = [
    "BatchSpans",
    "BlockingClient",
    "BufferLimits",
    "ClientTls",
    "Credentials",
    "LagListener",
    "Later",
    "Metrics",
    "Sql",
    "Store",
    "StoreConfig",
    "__version__",
    "aio",
    "analytics",
    "backfill",
    "connect",
    "count",
    "errors",
    "local_broker",
    "local_spark",
    "messages_behind",
    "open",
    "read",
    "register",
    "restore",
    "send_back",
]

# Imported when first asked for: the command line and Spark's look for data sources import this
# module, and pyarrow takes a third of a second.
_HOMES = {
    "BatchSpans": "rocketpy.connector.batch_spans",
    "BufferLimits": "rocketpy.broker_core.client.consuming.process_queue",
    "BlockingClient": "rocketpy.broker_core.client.faces.blocking",
    "ClientTls": "rocketpy.broker_core.net.client_tls",
    "Credentials": "rocketpy.broker_core.client.credentials",
    "LagListener": "rocketpy.connector.lag",
    "Later": "rocketpy.broker_core.client.consuming.verdicts",
    "Metrics": "rocketpy.connector.metrics",
    "Sql": "rocketpy.broker_core.client.consuming.subscriptions",
    "Store": "rocketpy.broker_core.embedded",
    "StoreConfig": "rocketpy.broker_core.config",
    "backfill": "rocketpy.spark_jobs.backfill",
    "connect": "rocketpy.broker_core.client.faces.blocking",
    "count": "rocketpy.connector.narrow_reads",
    "local_broker": "rocketpy.broker_core.local",
    "local_spark": "rocketpy.connector.session",
    "messages_behind": "rocketpy.connector.lag",
    "open": "rocketpy.broker_core.embedded",
    "read": "rocketpy.connector.narrow_reads",
    "register": "rocketpy.connector.registration",
    "restore": "rocketpy.spark_jobs.restore",
    "send_back": "rocketpy.connector.failed_rows",
}
_MODULES = {
    "aio": "rocketpy.aio",
    "analytics": "rocketpy.spark_jobs.analytics",
    "errors": "rocketpy.errors",
}
_WITHOUT_SPARK = (
    *("BlockingClient", "BufferLimits", "ClientTls", "Credentials", "Later", "Sql", "Store"),
    *("StoreConfig", "__version__", "aio", "connect", "errors", "local_broker", "open"),
)


def __dir__() -> list[str]:
    names = __all__ if _has_spark() else _WITHOUT_SPARK  # help() asks for each of them
    return sorted({*globals(), *names})


def _has_spark() -> bool:
    try:
        return find_spec("pyspark") is not None
    except (ImportError, ValueError):
        return False


if not TYPE_CHECKING:  # or checkers would take any name for one that is there

    def __getattr__(name: str) -> object:
        try:
            if name in _MODULES:
                return import_module(_MODULES[name])
            if name in _HOMES:
                return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as cause:
            if cause.name != "pyspark":
                raise
            remedy = f'rocketpy.{name} needs Spark: pip install "rocketpy-spark[spark]"'
            raise ModuleNotFoundError(remedy, name="pyspark") from cause
        raise AttributeError(f"module 'rocketpy' has no attribute {name!r}")
