"""Messages and ends of transactions, and a store for them, as the tests here want them."""

from __future__ import annotations

from typing import Any

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.message import Host, Message
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.checker import HalfPosition
from rocketpy.broker_core.transactions.ending import TransactionEnd, TransactionOutcome

CONFIG = StoreConfig(
    commit_log_file_size=1 << 16,
    consume_queue_file_entries=50,
    index_slots=100,
    index_entries=400,
    retention_hours=72,
)
HALF, OP, GIVEN_UP = (
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
)
CHECK_GROUP = "CID_RMQ_SYS_TRANS"
BORN_MS = 1_700_000_000_000


def message(name: str = "m0", **changes: Any) -> Message:
    """Return a message as a producer sends it within a transaction."""
    properties = {
        "TRAN_MSG": "true",
        "PGROUP": "payers",
        "UNIQ_KEY": f"KEY-{name}",
        "TAGS": "paid",
        "WAIT": "true",
        **changes.pop("properties", {}),
    }
    fields = {
        "topic": "orders",
        "queue_id": 3,
        "stored_body": name.encode(),
        "sys_flag": 4,
        "flag": -7,
        "born_timestamp_ms": BORN_MS,
        "born_host": Host("192.0.2.1", 99),
    }
    return Message(properties=properties, **{**fields, **changes})


def end_of(
    at: PlacedOne | HalfPosition, outcome: TransactionOutcome, **changes: Any
) -> TransactionEnd:
    """Return the end of the transaction whose half message is there."""
    fields = {
        "producer_group": "payers",
        "queue_offset": at.queue_offset,
        "physical_offset": at.physical_offset,
        "outcome": outcome,
    }
    return TransactionEnd(**{**fields, **changes})


def stored(store: MessageStore, topic: str) -> list[Message]:
    """Return all messages of a topic, in the order of the log."""
    found = []
    for queue_id in store.stored_queue_ids(topic):
        queue = store.queue(topic, queue_id)
        for offset in range(*queue.range()):
            unit = queue.queue.unit(offset)
            assert unit is not None
            found.append(store.message_at(unit.physical_offset))
    return sorted(found, key=lambda each: each.physical_offset)


def bodies(store: MessageStore, topic: str = "orders") -> list[str]:
    """Return the bodies of a topic, in the order of the log."""
    return [each.stored_body.decode() for each in stored(store, topic)]
