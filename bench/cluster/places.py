"""The places that hold the same messages: a folder, our broker, Apache's; Kafka has its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spark import messages
from spark.process_tree import Family
from spark.workbench import Workbench
from spark.writing import MAP
from wire.sides import Side, running_sides

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.dispatching import wait_until_dispatched
from rocketpy.broker_core.client.topics import ClusterTopics


@dataclass(frozen=True)
class Place:
    """Where our connector reads and writes: the option that says so, and the broker's process."""

    name: str
    option: str
    value: str
    broker: Family | None = None

    @property
    def line(self) -> str:
        """How its lines are called."""
        return f"rocketpy, {self.name}"

    def create_topic(self, topic: str) -> None:
        """Make a topic, with as many queues as all have."""
        with Cluster(self.value) as cluster:
            ClusterTopics(cluster).create(topic, queues=messages.QUEUES)

    def messages_of(self, topic: str) -> int:
        """Return how many messages a topic holds."""
        with Cluster(self.value) as cluster:
            # Apache's brokers acknowledge what is in their log; queues follow.
            wait_until_dispatched(cluster, cluster.masters(), timeout_s=60)
            return sum(each.messages for each in ClusterTopics(cluster).queues(topic))


@contextmanager
def filled_places(bench: Workbench, *, heap: str) -> Iterator[list[Place]]:
    """Start both brokers and fill them; stop them when the block ends. The folder is there."""
    root = bench.folder / "clusters"
    root.mkdir()
    with running_sides(root, heap=heap) as sides:
        clusters = [_place(side) for side in reversed(sides)]
        for place in clusters:
            place.create_topic(messages.TOPIC)
            write(bench, place, messages.TOPIC, MAP)
        yield [Place("a folder", "path", str(bench.store)), *clusters]


def write(bench: Workbench, place: Place, topic: str, columns: Sequence[str]) -> None:
    """Write all messages to a topic."""
    given = bench.spark.read.parquet(str(bench.input)).select(*columns)
    writer = given.write.format("rocketpy").mode("append")
    if "region" in columns:
        writer = writer.option("propertyColumns", "region")
    writer.option(place.option, place.value).option("topic", topic).save()


def _place(side: Side) -> Place:
    name = "Apache's broker" if side.name == "Apache" else "our broker"
    return Place(name, "namesrvAddr", side.namesrv_addr, Family(side.pid))
