"""What the tests of the console look at: a shop whose messages are as nasty as messages may be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.connector.cluster.places import ClusterPlace, FolderPlace, Place, running

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.property_names import CAUSE, RETRY_TOPIC
from rocketpy.console.changes.cluster import ClusterChanger
from rocketpy.console.changes.folder import FolderChanger
from rocketpy.console.cluster import ClusterReader
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace

SCRIPT = "<script>document.title='stolen'</script>"
NASTY = "\"'><img src=x onerror=\"document.title='stolen'\">"
PAID, UNPAID = 12, 5
READ = 3
CAUSES = ("timeout", "no_price", "no_price", SCRIPT)
DEAD_TOPIC = "%DLQ%billing"
DELAY_LEVEL, DELAYED = 18, 2  # two hours; and one message waits for tomorrow
TOMORROW_S = 24 * 3600


def until(claim: Callable[[], object]) -> None:
    """Return when something is so; pytest's time-out ends it if it never is."""
    while not claim():
        time.sleep(0.05)


def drafts() -> list[MessageDraft]:
    found = [
        MessageDraft(
            body=f'{{"order": {number}}}'.encode(),
            tags="paid" if number < PAID else "unpaid",
            keys=[f"o-{number}", "all"],
            properties={"region": "eu"},
            queue_id=number % 2,
        )
        for number in range(PAID + UNPAID)
    ]
    nasty = MessageDraft(
        body=SCRIPT.encode(),
        tags="nasty",
        keys=[SCRIPT],
        properties={NASTY: SCRIPT},
        queue_id=0,
    )
    return [*found, nasty, MessageDraft(body=bytes(range(256)), tags="bytes", queue_id=1)]


@contextmanager
def shop(kind: str, folder: Path) -> Iterator[Place]:
    """Have a shop in a folder, in a cluster of ours, or in one of Apache's; each has one broker."""
    if kind == "ours":
        with local_broker() as servers:
            ours = ClusterPlace(servers.namesrv_addr)
            with ours.cluster:
                fill(ours)
                yield ours
    else:
        with running(kind, folder, {"timerWheelEnable": True}) as place:
            fill(place)
            yield place


def fill(place: Place) -> None:
    """Have orders in two queues, a group that read some, and dead letters."""
    (broker,) = {queue.broker for queue in place.create("orders", 2)}
    place.create("empty", 1)
    if isinstance(place, FolderPlace):
        _fill_folder(place)
    else:
        assert isinstance(place, ClusterPlace)
        _fill_cluster(place, broker)


def _fill_folder(place: FolderPlace) -> None:
    store = place.store
    receipts = [
        store.send(
            "orders",
            each.body,
            tags=each.tags,
            keys=each.keys,
            properties=dict(each.properties or {}),
            queue_id=each.queue_id,
        )
        for each in drafts()
    ]
    store.commit("billing", "orders", {0: READ, 1: 0})
    for _ in range(DELAYED):
        store.send("orders", "later", delay_level=DELAY_LEVEL)
    store.send("orders", "tomorrow", deliver_at=int(time.time() + TOMORROW_S) * 1000)
    for receipt, cause in zip(receipts, CAUSES, strict=False):
        store.send_back(receipt, group="billing", delay_level=-1, cause=cause)


def _fill_cluster(place: ClusterPlace, broker: str) -> None:
    cluster = place.cluster
    producer = Producer(cluster)
    for each in drafts():
        producer.send("orders", each)
    for _ in range(DELAYED):
        producer.send("orders", MessageDraft(body=b"later", delay_level=DELAY_LEVEL))
    producer.send("orders", MessageDraft(body=b"tomorrow", delay_ms=TOMORROW_S * 1000))
    ClusterTopics(cluster).create(DEAD_TOPIC, 1)
    dead = [
        MessageDraft(
            body=f'{{"order": {number}}}'.encode(),
            keys=[f"o-{number}"],
            properties={CAUSE: cause, RETRY_TOPIC: "orders"},
        )
        for number, cause in enumerate(CAUSES)
    ]
    for each in dead:
        producer.send(DEAD_TOPIC, each)
    groups = ClusterGroups(cluster)
    first, second = (MessageQueue("orders", broker, number) for number in range(2))
    place.wait_for(first, 10)
    place.wait_for(second, 9)
    groups.make_retry_topic("billing")
    groups.move("billing", {first: READ, second: 0})
    until(lambda: _has(groups))


def _has(groups: ClusterGroups) -> bool:
    return "billing" in {each.group for each in groups.progress()}


def watched(place: Place, trails: Path | None = None) -> WatchedPlace:
    """Return a place as the console has it, looked at once."""
    if isinstance(place, FolderPlace):
        path = place.store.path
        found = WatchedPlace(FolderReader(path), FolderChanger(path))
    else:
        assert isinstance(place, ClusterPlace)
        access = ClusterAccess(place.cluster.address)
        found = WatchedPlace(ClusterReader(access), ClusterChanger(access, trails))
    found.watch.look()
    return found
