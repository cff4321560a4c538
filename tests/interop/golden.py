"""The store that Apache RocketMQ 5.5.0 wrote, kept in tests/golden, and what was pulled from it."""

from __future__ import annotations

import base64
import json
import tarfile
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden"

SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 500,
    "maxIndexNum": 2000,
}


def unpack(folder: Path) -> Path:
    """Unpack a fresh copy of the store and return its directory."""
    with tarfile.open(GOLDEN / "apache-rocketmq-store.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "store"


def queues() -> dict[tuple[str, int], tuple[int, int]]:
    """Return the offsets [min, max) of each queue, by topic and queue id."""
    recorded: dict[str, tuple[int, int]] = json.loads((GOLDEN / "messages-queues.json").read_text())
    found = {}
    for name, (low, high) in recorded.items():
        topic, _, queue_id = name.rpartition("/")
        found[topic, int(queue_id)] = (low, high)
    return found


def messages() -> list[dict[str, Any]]:
    """Return every message in the form of RocketMqTool.pull."""
    lines = (GOLDEN / "messages.jsonl").read_text("utf-8").splitlines()
    return [_as_pulled(json.loads(line)) for line in lines]


def _as_pulled(message: dict[str, Any]) -> dict[str, Any]:
    message.pop("storedBodyBase64", None)
    message.pop("clientSysFlag", None)
    message["body"] = base64.b64decode(message.pop("bodyBase64"))
    for host in ("bornHost", "storeHost"):
        message[host] = message[host].replace("|", ":")
    return message
