"""Messages into a store just as they are, with numbers and places that the store decides."""

from __future__ import annotations

import rocketpy
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.appends import PlacedOne


def put_message(store: rocketpy.Store, message: Message) -> PlacedOne:
    """Store a message; return where it went."""
    (placed,) = store._store.append_many([admitted(message, store.config)])
    return placed


def tag_code_of(message: Message, stored_ms: int, config: StoreConfig) -> int:
    """Return the tag code that the queue entry of a message gets."""
    return admitted(message, config).code_at(stored_ms)
