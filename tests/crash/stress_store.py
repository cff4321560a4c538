"""The store of the stress test: files of a few messages, so that all kinds roll all the time."""

from __future__ import annotations

import rocketpy

CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=256 << 10,
    consume_queue_file_entries=200,
    index_slots=500,
    index_entries=5_000,
    max_message_size=64 << 10,
    checkpoint_interval_ms=300,
    flush_interval_ms=50,
    lock_timeout_s=60,
    retention_hours=None,
)
TOPICS = ("orders", "logs")


def queues_of(topic: str) -> int:
    """Return how many queues a topic has."""
    return {"orders": 3, "logs": 1}[topic]
