"""What rocketpy writes and reads, in the form of RocketMqTool's answers, so that both compare."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop import workload
from tests.interop.workload import Outgoing

import rocketpy

ROOT = Path(__file__).parent.parent.parent
CHECKSUM_PROPERTY = "__CRC32#"  # not a property to our side: it guards the record

JAVA_NAMES = {
    "topic": "topic",
    "queue_id": "queueId",
    "queue_offset": "queueOffset",
    "commit_log_offset": "commitLogOffset",
    "msg_id": "msgId",
    "store_size": "storeSize",
    "uniq_key": "uniqKey",
    "tags": "tags",
    "keys": "keys",
    "properties": "properties",
    "body": "body",
    "body_crc": "bodyCRC",
    "sys_flag": "sysFlag",
    "flag": "flag",
    "born_timestamp": "bornTimestamp",
    "store_timestamp": "storeTimestamp",
    "born_host": "bornHost",
    "store_host": "storeHost",
    "reconsume_times": "reconsumeTimes",
    "prepared_transaction_offset": "preparedTransactionOffset",
}


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A message that send() has given a receipt for: what went in and where it lies."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    msg_id: str
    body_hex: str
    tags: str | None
    keys: list[str]
    properties: dict[str, str]
    flag: int

    def is_told_by(self, pulled: dict[str, Any]) -> bool:
        """Whether a pulled message has all that went in and the place of the receipt."""
        return (
            (pulled["queueId"], pulled["queueOffset"]) == (self.queue_id, self.queue_offset)
            and (pulled["commitLogOffset"], pulled["msgId"]) == (self.physical_offset, self.msg_id)
            and (pulled["topic"], pulled["body"].hex()) == (self.topic, self.body_hex)
            and (pulled["tags"], pulled["flag"]) == (self.tags, self.flag)
            and (pulled["keys"] or "").split() == self.keys
            and self.properties.items() <= pulled["properties"].items()
        )


def create_topics(store: rocketpy.Store) -> None:
    for topic, queues in workload.QUEUES_BY_TOPIC.items():
        store.create_topic(topic, queues=queues)


def send(store: rocketpy.Store, message: Outgoing) -> Acknowledged:
    receipt = store.send(**message)
    return Acknowledged(
        topic=message["topic"],
        queue_id=receipt.queue_id,
        queue_offset=receipt.queue_offset,
        physical_offset=receipt.physical_offset,
        msg_id=receipt.msg_id,
        body_hex=message["body"].hex(),
        tags=message["tags"],
        keys=message["keys"],
        properties=message["properties"],
        flag=message["flag"],
    )


def write_until_killed(path: Path, *, at_least: int) -> list[Acknowledged]:
    """Kill a child process while it writes under sync flush; return what it had receipts for."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.interop.crash_writer", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with writer:
        assert writer.stdout is not None
        lines = [line for _, line in zip(range(at_least), writer.stdout, strict=False)]
        writer.kill()
        lines += writer.stdout.readlines()
    assert len(lines) >= at_least, f"the writer ended by itself with {writer.returncode}"
    complete = [line for line in lines if line.endswith("\n")]
    return [Acknowledged(**json.loads(line)) for line in complete]


def read_all(store: rocketpy.Store, topics: Iterable[str]) -> list[dict[str, Any]]:
    """Return every message of the topics as RocketMqTool.pull does."""
    rows: list[dict[str, Any]] = []
    for topic in topics:
        rows += store.read(topic, columns=list(JAVA_NAMES)).read_all().to_pylist()
    return in_order(_as_pulled(row) for row in rows)


def _as_pulled(row: dict[str, Any]) -> dict[str, Any]:
    pulled = {JAVA_NAMES[name]: value for name, value in row.items()}
    pulled["properties"] = dict(row["properties"])
    for name in ("bornTimestamp", "storeTimestamp"):
        pulled[name] = round(pulled[name].timestamp() * 1000)
    return pulled


def in_order(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pulled messages by place, without the check sum that the Java client shows."""
    ordered = sorted(messages, key=lambda m: (m["topic"], m["queueId"], m["queueOffset"]))
    for message in ordered:
        message["properties"].pop(CHECKSUM_PROPERTY, None)
    return ordered


def offsets_by_key(messages: Iterable[dict[str, Any]]) -> dict[tuple[str, str], set[int]]:
    """Return for each (topic, key) of pulled messages the commit log offsets that have it."""
    found: dict[tuple[str, str], set[int]] = {}
    for message in messages:
        for key in (message["keys"] or "").split():
            found.setdefault((message["topic"], key), set()).add(message["commitLogOffset"])
    return found
