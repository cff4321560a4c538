"""What was pulled from Apache's broker before it stopped, in the form of our columns."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

HERE = Path(__file__).parent
ARCHIVE = HERE / "apache-rocketmq-store.tar.xz"

Row = dict[str, Any]

# Column -> name in messages.jsonl; what differs in more than the name is in _row().
_SAME = {
    "topic": "topic",
    "queue_id": "queueId",
    "queue_offset": "queueOffset",
    "tags": "tags",
    "keys": "keys",
    "properties": "properties",
    "born_timestamp": "bornTimestamp",
    "store_timestamp": "storeTimestamp",
    "msg_id": "msgId",
    "uniq_key": "uniqKey",
    "reconsume_times": "reconsumeTimes",
    "flag": "flag",
    "sys_flag": "sysFlag",
    "commit_log_offset": "commitLogOffset",
    "store_size": "storeSize",
    "body_crc": "bodyCRC",
    "prepared_transaction_offset": "preparedTransactionOffset",
}


def _row(message: Row) -> Row:
    row: Row = {column: message[name] for column, name in _SAME.items()}
    row["broker"] = "rocketpy"
    row["body"] = base64.b64decode(message["bodyBase64"])
    for column, name in (("born_host", "bornHost"), ("store_host", "storeHost")):
        row[column] = message[name].replace("|", ":")  # all of them are IPv4
    return row


def _lines() -> list[Row]:
    return [json.loads(line) for line in (HERE / "messages.jsonl").read_text("utf-8").splitlines()]


def messages() -> list[Row]:
    """Every message, all columns, by topic, queue and queue offset."""
    rows = [_row(message) for message in _lines()]
    return sorted(rows, key=lambda row: (row["topic"], row["queue_id"], row["queue_offset"]))


def stored_bodies() -> dict[int, bytes]:
    """The body as the record holds it, by physical offset: compressed where the sender did so."""
    return {
        line["commitLogOffset"]: base64.b64decode(
            line.get("storedBodyBase64") or line["bodyBase64"]
        )
        for line in _lines()
    }


def queue_ranges() -> dict[tuple[str, int], tuple[int, int]]:
    """First offset and offset behind the last of each queue that has messages."""
    found = {}
    for name, (low, high) in json.loads((HERE / "messages-queues.json").read_text()).items():
        topic, _, queue_id = name.rpartition("/")
        found[topic, int(queue_id)] = (low, high)
    return found


def rows_of(table: pa.Table | pa.RecordBatchReader) -> list[Row]:
    """Return a table of ours in the same form: times in ms, properties as a dict."""
    if isinstance(table, pa.RecordBatchReader):
        table = table.read_all()
    rows: list[Row] = []
    times = {name for name in table.schema.names if name.endswith("_timestamp")}
    columns = {
        name: (table[name].cast(pa.int64()) if name in times else table[name]).to_pylist()
        for name in table.schema.names
    }
    for number in range(table.num_rows):
        row = {name: values[number] for name, values in columns.items()}
        if "properties" in row:
            row["properties"] = dict(row["properties"])
        rows.append(row)
    return rows


def keys_of(rows: Iterable[Row]) -> dict[tuple[str, str], set[int]]:
    """Physical offsets by topic and key, unique keys included."""
    found: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        words = [*(row["keys"] or "").split(" "), row["uniq_key"] or ""]
        for word in filter(None, words):
            found.setdefault((row["topic"], word), set()).add(row["commit_log_offset"])
    return found
