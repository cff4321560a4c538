"""`make demo`: a small shop. Orders come in while Spark bills them and lands them in Delta Lake.

A till, a process of its own, sends orders to a topic. One streaming query reads them by consumer
group, looks the customers up and writes bills to another topic, exactly once; a second one lands
the bills in a Delta table. At the end every order has one bill, and a plot shows how the lag fell.
No server runs: the store is a folder. It is left, for the console to look into.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import random
import shutil
import sys
import time
from pathlib import Path

import matplotlib
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console
from rich.table import Table

import rocketpy

matplotlib.use("Agg")
from matplotlib import pyplot

FOLDER = Path("rocketpy-demo")
STORE = str(FOLDER / "store")
BACKLOG, LIVE, PER_SECOND = 100_000, 20_000, 1_000
COUNTRIES = ("France", "Japan", "Kenya", "Peru")
console = Console()


def order(number: int, chance: random.Random) -> tuple[str, str]:
    """Return the body of an order, and who it is of."""
    customer = f"customer-{chance.randrange(500)}"
    cents = chance.randrange(100, 100_000)
    return json.dumps({"order": number, "customer": customer, "cents": cents}), customer


def backlog(store: rocketpy.Store) -> None:
    """Fill the topic with what came in overnight: the bulk path."""
    chance = random.Random(1)
    orders = [order(number, chance) for number in range(BACKLOG)]
    keys = [f"order-{number}" for number in range(BACKLOG)]
    bodies, customers = zip(*orders, strict=True)
    store.append("orders", pa.table({"body": bodies, "keys": keys, "sharding_key": customers}))


def till() -> None:
    """Send orders one by one, as a shop does: a process of its own."""
    chance = random.Random(2)
    with rocketpy.open(STORE) as store:
        started = time.monotonic()
        for number in range(BACKLOG, BACKLOG + LIVE):
            body, customer = order(number, chance)
            store.send("orders", body, keys=f"order-{number}", sharding_key=customer)
            ahead = started + (number - BACKLOG) / PER_SECOND - time.monotonic()
            if ahead > 0.02:
                time.sleep(ahead)


def topic(spark: SparkSession, name: str, group: str) -> DataFrame:
    """Return a topic as a stream that is read by a group."""
    reader = spark.readStream.format("rocketpy").option("path", STORE).option("topic", name)
    return reader.option("consumerGroup", group).option("maxRowsPerTrigger", 25_000).load()


def bill_orders(spark: SparkSession) -> StreamingQuery:
    """Read orders, look up the customers' countries, write bills to another topic."""
    rows = [(f"customer-{number}", COUNTRIES[number % 4]) for number in range(500)]
    customers = spark.createDataFrame(rows, "customer string, country string")
    fields = F.from_json(F.col("body").cast("string"), "order long, customer string, cents long")
    bills = (
        topic(spark, "orders", "billing")
        .select("keys", fields.alias("order"))
        .select("keys", "order.*")
        .join(F.broadcast(customers), "customer")
        .select(
            F.to_json(F.struct("order", "customer", "country", "cents")).alias("body"),
            F.col("country").alias("tags"),
            "keys",
            F.col("customer").alias("sharding_key"),
        )
    )
    writer = bills.writeStream.format("rocketpy").option("path", STORE).option("topic", "bills")
    return writer.option("checkpointLocation", str(FOLDER / "checkpoint-bills")).start()


def land_bills(spark: SparkSession) -> StreamingQuery:
    """Land the bills in a Delta table."""
    fields = "order long, customer string, country string, cents long"
    bills = topic(spark, "bills", "lake").select(
        F.from_json(F.col("body").cast("string"), fields).alias("bill"), "store_timestamp"
    )
    writer = bills.select("bill.*", "store_timestamp").writeStream.format("delta")
    checkpoint = str(FOLDER / "checkpoint-lake")
    return writer.option("checkpointLocation", checkpoint).start(str(FOLDER / "bills"))


def lag(store: rocketpy.Store, name: str, group: str) -> int:
    """Return how many messages a group has still to read."""
    committed = store.committed(group, name)
    return sum(end - committed.get(queue, 0) for queue, (_, end) in store.queues(name).items())


def watch(store: rocketpy.Store, process: multiprocessing.process.BaseProcess) -> list[list[float]]:
    """Print the lag of both groups as it falls; return it with its times."""
    seen, started, done = list[list[float]](), time.monotonic(), False
    console.print(f"{'seconds':>8} {'orders to bill':>15} {'bills to land':>15}")
    while not done:
        selling = process.is_alive()
        now = time.monotonic() - started
        lags = lag(store, "orders", "billing"), lag(store, "bills", "lake")
        done = not selling and not any(lags)
        if done or not seen or now - seen[-1][0] >= 1:
            console.print(f"{now:8.1f} {lags[0]:15,} {lags[1]:15,}")
            seen.append([now, *lags])
        time.sleep(0.1)
    return seen


def plot(seen: list[list[float]], path: Path) -> None:
    """Save the lag over time as a picture."""
    times, billing, lake = zip(*seen, strict=True)
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot(times, billing, color="#0072B2", label="orders to bill (group billing)")
    axes.plot(times, lake, color="#D55E00", linestyle="--", label="bills to land (group lake)")
    axes.set(title="Two streaming queries catch up", xlabel="seconds", ylabel="messages behind")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def report(spark: SparkSession) -> None:
    """Show what landed, and hold it against what was sold."""
    bills = spark.read.format("delta").load(str(FOLDER / "bills"))
    shown = Table("country", "bills", "euros", title="The Delta table")
    for row in bills.groupBy("country").agg(F.count("*"), F.sum("cents")).sort("country").collect():
        shown.add_row(row[0], f"{row[1]:,}", f"{row[2] / 100:,.2f}")
    console.print(shown)
    rows, orders = bills.select(F.count("*"), F.countDistinct("order")).first() or (0, 0)
    assert rows == orders == BACKLOG + LIVE, (rows, orders)
    console.print(f"{rows:,} bills for {orders:,} orders: each exactly once")


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    console.print("starting Spark ...")
    spark = rocketpy.local_spark()
    with rocketpy.open(STORE) as store:
        for name in ("orders", "bills"):
            store.create_topic(name, queues=4)
        backlog(store)
        process = multiprocessing.get_context("spawn").Process(target=till)
        process.start()
        queries = [bill_orders(spark), land_bills(spark)]
        seen = watch(store, process)
        for query in queries:
            query.stop()
        report(spark)
        problems = list(store.verify())
        assert not problems, problems
    spark.stop()
    plot(seen, FOLDER / "lag.png")
    console.print(f"the store is sound; the lag over time is drawn in {FOLDER / 'lag.png'}")
    tell_of_console(Path(STORE))


def tell_of_console(store: Path) -> None:
    """Say where the console shows the store, and how to start it."""
    command = Path(sys.executable).with_name("rocketpy")
    with contextlib.suppress(ValueError):
        command = command.relative_to(Path.cwd())
    console.print("to look into it with a browser, at http://127.0.0.1:9800/:")
    console.print(f"  {command} console {store}", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
