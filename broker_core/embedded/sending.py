"""Messages into a store: one by one, or a table at a time."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from rocketpy.broker_core.delay.scheduling import scheduled
from rocketpy.broker_core.delay.timing import handle_of, timed
from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    QueueNotFoundError,
    TopicNotFoundError,
)
from rocketpy.broker_core.intake.destination import queue_of, refuse_system_topic
from rocketpy.broker_core.intake.gate import admitted, drafted
from rocketpy.broker_core.intake.single import message_properties, stored_body
from rocketpy.broker_core.intake.table import Intake, MessageData
from rocketpy.broker_core.message import Message, offset_id
from rocketpy.broker_core.metadata import TopicConfig
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.storage.store import MessageStore


class Receipt(NamedTuple):
    """What `send` returns: where the message is; where it waits, if it was sent with a delay."""

    msg_id: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    stored_ms: int
    recall_handle: str | None = None  # of a message that was sent with deliver_at


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What `append` returns: how many messages, and which offsets of each queue they took."""

    count: int
    queues: dict[int, tuple[int, int]]  # queue id -> first offset and end


@guarded
class Sending(StoreHandle):
    """The side of a store that producers use."""

    def __init__(self, store: MessageStore) -> None:
        super().__init__(store)
        self._writable: dict[str, TopicConfig] = {}
        self._turns: dict[str, int] = {}  # where round robin over a topic's queues goes on

    def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        flag: int = 0,
        compress: Literal["zlib", "lz4", "zstd"] | None = None,
        delay_level: int = 0,
        deliver_at: Time | None = None,
    ) -> Receipt:
        """Store one message; messages of one sharding key go to one queue, in order.

        A message with a `delay_level` (from 1 on) or a time to `deliver_at` waits until it is
        delivered: see deliver_due() and delivering(). A time is ms since 1970, a datetime with its
        zone, or a text of ISO 8601, which is UTC if it says no zone.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was stored.
            DiskFullError: there is no room; nothing was stored.
        """
        if self._store.read_only:
            self._require_writable("send")
        config = self._writable_topic(topic)
        stored, sys_flag = stored_body(body, compress)
        named = message_properties(tags, keys, properties, sharding_key)
        queue_id = self._choose_queue(config, queue_id, sharding_key)
        store_config, now_ms, handle = self._store.config, self._store.clock.now_ms(), None
        if delay_level or deliver_at is not None:
            message = Message(
                topic=topic,
                stored_body=stored,
                properties=named,
                queue_id=queue_id,
                flag=flag,
                sys_flag=sys_flag,
                born_timestamp_ms=now_ms,
                store_host=store_config.store_host,
                has_checksum=store_config.record_checksum,
            )
            message = self._as_it_waits(message, delay_level, deliver_at)
            draft, handle = admitted(message, store_config), handle_of(message, store_config)
        else:
            draft = drafted(
                topic,
                queue_id,
                stored,
                named,
                store_config,
                born_ms=now_ms,
                flag=flag,
                sys_flag=sys_flag,
            )
        (placed,) = self._store.append_many([draft])
        offset, physical_offset, stored_ms = placed
        msg_id = offset_id(store_config.store_host, physical_offset)
        recall_handle = handle.text() if handle else None
        return Receipt(msg_id, draft.queue[1], offset, physical_offset, stored_ms, recall_handle)

    def _as_it_waits(self, message: Message, delay_level: int, deliver_at: Time | None) -> Message:
        if deliver_at is None:
            waiting = scheduled(message, delay_level, self.config)
        elif delay_level:
            raise MessageRefusedError("deliver_at", "there is a delay_level too: give one of them")
        else:
            deliver_ms = milliseconds("deliver_at", deliver_at)
            waiting = timed(message, deliver_ms, self.config, now_ms=message.born_timestamp_ms)
        if waiting is not message:
            self._make_system_topic(waiting.topic)
        return waiting

    def append(self, topic: str, data: MessageData) -> AppendResult:
        """Store the rows of an Arrow table, or a list of dicts: the bulk path.

        Columns are `body`, and where present `tags`, `keys` (a text or a list), `properties` (a
        map), `queue_id` or `sharding_key`, `flag`, `born_timestamp`, `delay_level` or `deliver_at`.
        Rows are stored in order, some thousand at a time; each such batch whole or not at all. Rows
        with neither `queue_id` nor `sharding_key` go round the queues. Rows with `delay_level` or
        `deliver_at` wait elsewhere: they count, but have no offset in a queue of the topic yet.
        """
        self._require_writable("append")
        config = self._writable_topic(topic)
        turn = self._turns.setdefault(topic, random.randrange(config.write_queues))
        intake = Intake(topic, config.write_queues, self.config, turn)
        count, queues = 0, dict[int, tuple[int, int]]()
        for batch in intake.batches(data, self._store.clock.now_ms()):
            if batch.topic != topic:
                self._make_system_topic(batch.topic)
            placed = self._store.append(batch)
            count += len(batch.run)
            if batch.topic != topic:
                continue
            for queue_id in np.unique(batch.queue_ids).tolist():
                offsets = placed.queue_offsets[batch.queue_ids == queue_id]
                first = queues.get(queue_id, (int(offsets[0]), 0))[0]
                queues[queue_id] = first, int(offsets[-1]) + 1
        self._turns[topic] = intake.turn
        self._store.acknowledge()
        return AppendResult(count, queues)

    def _writable_topic(self, name: str) -> TopicConfig:
        config = self._store.topic(name)
        if config is not None and config is self._writable.get(name):  # was looked at before
            return config
        refuse_system_topic(name)
        if config is None:
            raise TopicNotFoundError(name, self._store.topics.all())
        if not config.is_writable:
            raise MessageRefusedError(
                f"topic {name!r}", f"its permission is {config.perm}: not to write"
            )
        self._writable[name] = config
        return config

    def _choose_queue(
        self, config: TopicConfig, queue_id: int | None, sharding_key: str | None
    ) -> int:
        if queue_id is not None:
            if not 0 <= queue_id < config.write_queues:
                raise QueueNotFoundError(config.name, queue_id, config.write_queues)
            return queue_id
        if sharding_key is not None:
            return queue_of(sharding_key, config.write_queues)
        turn = self._turns.get(config.name)
        if turn is None:
            turn = random.randrange(config.write_queues)
        self._turns[config.name] = (turn + 1) % config.write_queues
        return turn
