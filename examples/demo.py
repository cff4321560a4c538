"""`make demo`: a small shop on an embedded store, from the first order to a killed writer.

Three processes take orders at the same time and one of them is killed with -9; then the orders are
counted, filtered, looked up by key and the store is verified. Nothing runs but this program.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import rocketpy

ORDERS, BATCH, QUEUES = 60_000, 2_000, 4
REGIONS = ("eu", "us", "asia")
console = Console()


def orders(till: int, first: int, count: int) -> pa.Table:
    """Return some orders as a table: a body, a tag, a key, properties."""
    chance = random.Random(till * ORDERS + first)
    numbers = range(first, first + count)
    regions = [chance.choice(REGIONS) for _ in numbers]
    return pa.table(
        {
            "body": [
                f'{{"order": "{till}-{n}", "cents": {chance.randint(100, 99_999)}}}'
                for n in numbers
            ],
            "tags": [chance.choice(("paid", "paid", "paid", "refused")) for _ in numbers],
            "keys": [f"order-{till}-{n}" for n in numbers],
            "sharding_key": [f"customer-{chance.randint(1, 500)}" for _ in numbers],
            "properties": pa.array(
                [[("region", r)] for r in regions], pa.map_(pa.string(), pa.string())
            ),
        }
    )


def take_orders(path: Path, till: int) -> None:
    """Be one till of the shop: append orders, batch by batch."""
    with rocketpy.open(path) as store:
        for first in range(0, ORDERS, BATCH):
            store.append("orders", orders(till, first, BATCH))
            time.sleep(0.01)


def sell(path: Path) -> None:
    """Run three tills at once, kill the last one halfway, and watch the topic grow."""
    processes = multiprocessing.get_context("spawn")
    tills = [processes.Process(target=take_orders, args=(path, till)) for till in range(3)]
    for till in tills:
        till.start()
    with rocketpy.open(path, read_only=True) as shop, Progress(console=console) as progress:
        bar = progress.add_task("orders stored", total=3 * ORDERS)
        while any(till.is_alive() for till in tills):
            stored = sum(end for _, end in shop.queues("orders").values())
            progress.update(bar, completed=stored)
            if stored > ORDERS and tills[2].pid is not None and tills[2].is_alive():
                os.kill(tills[2].pid, signal.SIGKILL)
                progress.console.print("till 3 was killed with -9; the others go on")
            time.sleep(0.05)
        progress.update(bar, completed=sum(end for _, end in shop.queues("orders").values()))
    for till in tills:
        till.join()


def report(store: rocketpy.Store) -> None:
    """Show what the store holds, read as Arrow."""
    found = store.read("orders", columns=["queue_id", "tags", "properties"]).read_all()
    region = pc.map_lookup(found["properties"], pa.scalar("region"), "first")
    counts = pa.table({"region": region, "tag": found["tags"]}).group_by(["region", "tag"])
    shown = Table("region", "tag", "orders", title=f"{found.num_rows:,} orders in {QUEUES} queues")
    for row in (
        counts.aggregate([([], "count_all")])
        .sort_by([("region", "ascending"), ("tag", "ascending")])
        .to_pylist()
    ):
        shown.add_row(row["region"], row["tag"], f"{row['count_all']:,}")
    console.print(shown)

    refused = store.read("orders", tags="refused", columns=["body"]).read_all()
    console.print(f"tags='refused': {refused.num_rows:,} orders, found by hash in the queues")
    (one,) = store.query(
        "orders", key="order-0-42", columns=["queue_id", "queue_offset", "body"]
    ).to_pylist()
    place = f"queue {one['queue_id']}, offset {one['queue_offset']}"
    console.print(f"key='order-0-42': {place}, {one['body'].decode()}")
    store.commit(
        "billing", "orders", {queue: end for queue, (_, end) in store.queues("orders").items()}
    )
    console.print(f"group 'billing' has read up to {store.committed('billing', 'orders')}")
    problems = list(store.verify())
    assert not problems, problems
    console.print("verified: every record, queue entry, key and check sum is sound")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-demo-"))
    try:
        with rocketpy.open(folder / "shop") as store:
            store.create_topic("orders", queues=QUEUES)
        sell(folder / "shop")
        with rocketpy.open(folder / "shop") as store:
            report(store)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
