"""Names of topics and consumer groups: the rules, and the names that RocketMQ keeps for itself.

As Apache's TopicValidator (5.5.0). Besides these, an Apache broker treats the topics named after
its cluster, its broker and `<cluster>_REPLY_TOPIC` as its own: only it knows those names.
"""

from __future__ import annotations

import re

from rocketpy.broker_core.errors import GroupNameError, TopicNameError

TOPIC_NAME_LIMIT = 127
# `%RETRY%<group>_<topic>`, the retry topic of POP consumers, can be this long.
RETRY_TOPIC_NAME_LIMIT = 255
# Short enough for `%RETRY%<group>` to be a topic.
GROUP_NAME_LIMIT = 120

RETRY_TOPIC_PREFIX = "%RETRY%"
DEAD_LETTER_TOPIC_PREFIX = "%DLQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"

AUTO_CREATE_TOPIC = "TBW102"  # the template of topics made by the first send
BENCHMARK_TOPIC = "BenchmarkTest"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
ROCKSDB_CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
ROCKSDB_TRANSACTION_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_TRANSACTION_OP_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"  # waiting messages of the delay levels
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"  # waiting messages of the timer wheel
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
TRANSACTION_HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANSACTION_OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
UNRESOLVED_TRANSACTION_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"

_NO_SENDING_TOPICS = frozenset(
    {
        OFFSET_MOVED_TOPIC,
        ROCKSDB_TRANSACTION_HALF_TOPIC,
        ROCKSDB_TRANSACTION_OP_TOPIC,
        SCHEDULE_TOPIC,
        SELF_TEST_TOPIC,
        TRANSACTION_HALF_TOPIC,
        TRANSACTION_OP_TOPIC,
        UNRESOLVED_TRANSACTION_TOPIC,
    }
)
_RESERVED_TOPICS = _NO_SENDING_TOPICS | {
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    ROCKSDB_CHECKPOINT_TOPIC,
    TRACE_TOPIC,
}

# Groups that every broker has (as SubscriptionGroupManager#init).
SYSTEM_GROUPS = (
    *("TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY"),
    *("CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS"),
)
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
# Groups in whose offsets our sink keeps notes, at brokers that have no ledger. Nobody consumes with
# them, and their offsets are no places in queues.
NOTES_GROUP_PREFIX = "rocketpy-sink-"

_FORBIDDEN_CHARACTER = re.compile(r"[^%|a-zA-Z0-9_-]")


def is_reserved_topic(name: str) -> bool:
    """Whether no client may make such a topic (as TopicValidator#isSystemTopic)."""
    return name in _RESERVED_TOPICS or name.startswith(SYSTEM_TOPIC_PREFIX)


def is_system_topic(name: str) -> bool:
    """Whether the topic is RocketMQ's own: a reserved one, one of retries or of dead letters."""
    return is_reserved_topic(name) or is_retry_topic(name) or is_dead_letter_topic(name)


def is_system_group(name: str) -> bool:
    """Whether a group is RocketMQ's own, or has notes: nobody asks how far it has read."""
    return name in SYSTEM_GROUPS or name.startswith(SYSTEM_GROUP_PREFIX) or is_notes_group(name)


def is_notes_group(name: str) -> bool:
    """Whether offsets of a group are notes of a sink."""
    return name.startswith(NOTES_GROUP_PREFIX)


def is_sending_forbidden(topic: str) -> bool:
    """Whether clients may not send to it (as TopicValidator#isNotAllowedSendTopic)."""
    return topic in _NO_SENDING_TOPICS


def is_retry_topic(name: str) -> bool:
    """Whether the topic holds messages that a group shall be given once more."""
    return name.startswith(RETRY_TOPIC_PREFIX)


def is_dead_letter_topic(name: str) -> bool:
    """Whether the topic holds messages that a group has given up."""
    return name.startswith(DEAD_LETTER_TOPIC_PREFIX)


def retry_topic(group: str) -> str:
    """Return the topic of the group's messages to be given once more."""
    return RETRY_TOPIC_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """Return the topic of the messages that the group has given up."""
    return DEAD_LETTER_TOPIC_PREFIX + group


def check_topic_name(name: str, *, limit: int = TOPIC_NAME_LIMIT) -> None:
    """Accept a name that RocketMQ would take; retry and dead-letter topics may be longer.

    Raises TopicNameError.
    """
    if is_retry_topic(name) or is_dead_letter_topic(name):
        limit = max(limit, RETRY_TOPIC_NAME_LIMIT)
    if reason := _what_is_wrong(name, limit):
        raise TopicNameError(name, reason)


def check_group_name(name: str, *, limit: int = GROUP_NAME_LIMIT) -> None:
    """Accept a name that RocketMQ would take.

    Raises GroupNameError.
    """
    if reason := _what_is_wrong(name, limit):
        raise GroupNameError(name, reason)


def _what_is_wrong(name: str, limit: int) -> str | None:
    if not name:
        return "it is empty; give at least one character"
    if found := _FORBIDDEN_CHARACTER.search(name):
        return f"it has {found[0]!r} at position {found.start()}; use letters a-z, digits, % | _ -"
    if len(name) > limit:
        return f"it has {len(name)} characters; {limit} are allowed"
    return None
