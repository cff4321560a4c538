"""Messages that a group could not deal with, sent back: one by one."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.embedded.sending import Receipt
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    MessageNotFoundError,
    MessageRefusedError,
    OffsetOutOfRangeError,
    QueueNotFoundError,
)
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message, offset_id, parse_offset_id
from rocketpy.broker_core.metadata.names import (
    SCHEDULE_TOPIC,
    dead_letter_topic,
    is_system_topic,
)
from rocketpy.broker_core.property_names import DELAY
from rocketpy.broker_core.retry.replay import ReplayRule
from rocketpy.broker_core.retry.rules import DEAD_LETTER_QUEUES, RetryRule, sent_back
from rocketpy.broker_core.retry.settings import group_settings


class SentBack(NamedTuple):
    """What `send_back` returns: where the message will be read, and where its copy lies."""

    topic: str  # the group's retry topic, or that of its dead letters
    is_dead: bool
    reconsume_times: int
    delay_level: int  # 0: it is there already
    receipt: Receipt  # of the copy: in the schedule topic, or among the dead letters


@guarded
class Retrying(StoreHandle):
    """The side of a store that takes back what a group could not deal with."""

    def send_back(
        self,
        message: Receipt | str | tuple[str, int, int],
        *,
        group: str,
        delay_level: int = 0,
        cause: str | None = None,
    ) -> SentBack:
        """Have a stored message given to a group once more, later; or give it up.

        `message` is a receipt, an offset id, or topic, queue id and queue offset. At level 0 the
        delay grows with each try; after the group's `retry_max_times`, or with a negative level,
        the message goes to the group's dead letters. The cause is kept in a property. A group that
        is missing is made, as Apache's broker does.

        Raises:
            MessageNotFoundError, TopicNotFoundError, QueueNotFoundError, OffsetOutOfRangeError:
                there is no such message.
            GroupNameError: RocketMQ would not take the name.
            MessageRefusedError: the group may not consume, or the message cannot be stored.
        """
        self._require_writable("send back")
        found = self._find(message)
        settings = group_settings(self._store, group)
        rule = RetryRule(group=settings, config=self.config, delay_level=delay_level)
        queue_id = random.randrange(settings.retry_queues)
        copy = sent_back(found, rule, queue_id=queue_id, cause=cause)
        draft = admitted(copy, self.config)
        is_dead = copy.topic != SCHEDULE_TOPIC
        topic = rule.dead_letter_topic if is_dead else rule.retry_topic
        self._make_topic(topic, DEAD_LETTER_QUEUES if is_dead else settings.retry_queues)
        if not is_dead:
            self._make_system_topic(SCHEDULE_TOPIC)
        (placed,) = self._store.append_many([draft])
        msg_id = offset_id(copy.store_host, placed.physical_offset)
        return SentBack(
            topic=topic,
            is_dead=is_dead,
            reconsume_times=copy.reconsume_times,
            delay_level=int(copy.properties[DELAY]),
            receipt=Receipt(msg_id, copy.queue_id, *placed),
        )

    def replay(
        self, group: str, queue_id: int, queue_offset: int, *, run_id: str, to: str | None = None
    ) -> tuple[str, int, int]:
        """Store a copy of one dead letter in its first topic, or in another; durable on return.

        Returns topic, queue id and offset of the copy, which is what `rocketpy job replay` makes:
        it tells `run_id` and where the dead letter is. Who calls sees to it that each goes once.

        Raises:
            TopicNotFoundError: there is no topic that it could go to, or it may not be written.
            QueueNotFoundError, OffsetOutOfRangeError: there is no such dead letter.
            MessageRefusedError: nothing tells its first topic, or it does not fit.
        """
        self._require_writable("replay")
        topic = dead_letter_topic(group)
        if queue_id not in (ids := self._queue_ids(topic)):
            raise QueueNotFoundError(topic, queue_id, len(ids))
        queues = {
            name: each.write_queues
            for name, each in self._store.topics.all().items()
            if each.is_writable and not is_system_topic(name)
        }
        rule = ReplayRule(run_id=run_id, config=self.config, queues=queues, to=to)
        offsets = np.array([queue_offset], np.int64)
        ((batch, _),) = (
            copy
            for block in self._store.queue(topic, queue_id).blocks_at(offsets)
            for copy in rule.copies(block)
        )
        placed = self._store.append(batch)
        self._store.acknowledge()
        return batch.topic, int(batch.queue_ids[0]), int(placed.queue_offsets[0])

    def _make_topic(self, name: str, queues: int) -> None:
        config = self._store.topic(name)
        if config is None or config.write_queues < queues:
            config = self._store.create_topic(name, queues)
        if not config.is_writable:
            reason = f"its permission is {config.perm}: not to write"
            raise MessageRefusedError(f"topic {name!r}", reason)

    def _find(self, message: Receipt | str | tuple[str, int, int]) -> Message:
        if isinstance(message, Receipt):
            return self._record_at(message.msg_id, message.physical_offset)
        if isinstance(message, str):
            _, offset = parse_offset_id(message)
            return self._record_at(message, offset)
        try:
            topic, queue_id, queue_offset = message
        except (TypeError, ValueError) as cause:
            reason = "give a receipt, an offset id, or (topic, queue id, queue offset)"
            raise MessageRefusedError(f"message {message!r:.60}", reason) from cause
        return self._record_of(topic, queue_id, queue_offset)

    def _record_at(self, name: str, offset: int) -> Message:
        if offset < self._store.log_start():
            raise MessageNotFoundError(name, f"the log begins behind {offset}: it was deleted")
        try:
            return self._store.message_at(offset)
        except CorruptStoreError as cause:
            reason = f"the log has no record at {offset} ({cause.reason})"
            raise MessageNotFoundError(name, reason) from cause

    def _record_of(self, topic: str, queue_id: int, queue_offset: int) -> Message:
        if queue_id not in (ids := self._queue_ids(topic)):
            raise QueueNotFoundError(topic, queue_id, len(ids))
        reader = self._store.queue(topic, queue_id)
        low, high = reader.range()
        unit = reader.queue.unit(queue_offset) if low <= queue_offset < high else None
        if unit is None or unit.is_filler:
            raise OffsetOutOfRangeError(topic, queue_id, queue_offset, (low, high))
        return self._store.message_at(unit.physical_offset)
