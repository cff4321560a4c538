"""Spark's Kafka connector as one uses it: with its defaults, and tuned for throughput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

DEFAULT: Mapping[str, str] = {}
TUNED_READ = {
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.max.poll.records": "10000",
    "kafka.receive.buffer.bytes": str(1 << 20),
}
TUNED_WRITE = {"kafka.linger.ms": "5", "kafka.batch.size": str(256 << 10)}
SETTINGS = {"default": (DEFAULT, DEFAULT), "tuned": (TUNED_READ, TUNED_WRITE)}


class KafkaClients:
    """Reads and writes topics of one broker through Spark."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self._spark, self._address = spark, address

    def read(self, topic: str, options: Mapping[str, str]) -> DataFrame:
        """Return a topic with all its columns, headers included."""
        return (
            self._spark.read.format("kafka").options(**self.source_options(topic, options)).load()
        )

    def stream(self, topic: str, options: Mapping[str, str]) -> DataFrame:
        """Return a topic from its beginning on, as a stream."""
        source = {"startingOffsets": "earliest", **self.source_options(topic, options)}
        return self._spark.readStream.format("kafka").options(**source).load()

    def write(self, messages: DataFrame, topic: str, options: Mapping[str, str]) -> None:
        """Send key, value and headers of messages."""
        named = messages.selectExpr("keys AS key", "body AS value", "headers")
        sink = {"kafka.bootstrap.servers": self._address, "topic": topic, **options}
        named.write.format("kafka").options(**sink).save()

    def create_topic(self, topic: str, partitions: int) -> None:
        """Make a topic; it is there on return."""
        jvm, some = self._spark._jvm, self._spark._jvm.java.util.Optional
        new = jvm.org.apache.kafka.clients.admin.NewTopic(topic, some.of(partitions), some.empty())
        with self._admin() as admin:
            admin.createTopics(_java_list(jvm, new)).all().get()

    def delete_topic(self, topic: str) -> None:
        """Remove a topic; the broker frees its disk a little later."""
        with self._admin() as admin:
            admin.deleteTopics(_java_list(self._spark._jvm, topic)).all().get()

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        jvm = self._spark._jvm
        settings = jvm.java.util.HashMap()
        settings.put("bootstrap.servers", self._address)
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            yield admin
        finally:
            admin.close()

    def source_options(self, topic: str, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a read of a topic."""
        return {
            "kafka.bootstrap.servers": self._address,
            "subscribe": topic,
            "includeHeaders": "true",
            **options,
        }


def _java_list(jvm: Any, entry: object) -> Any:
    entries = jvm.java.util.ArrayList()
    entries.add(entry)
    return entries
