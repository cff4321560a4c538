from __future__ import annotations

import pickle

import pytest

from rocketpy.broker_core.errors import GroupNameError, TopicNameError
from rocketpy.broker_core.metadata.dialect import loads
from rocketpy.broker_core.metadata.names import (
    check_group_name,
    check_topic_name,
    dead_letter_topic,
    is_reserved_topic,
    is_sending_forbidden,
    is_system_topic,
    retry_topic,
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "topic name '': it is empty"),
        (" ", "it has ' ' at position 0; use letters a-z, digits, % | _ -"),
        ("orders.eu", "it has '.' at position 6"),
        ("orders/eu", "it has '/' at position 6"),
        ("orders\n", r"it has '\n' at position 6"),
        ("bestellungen-für-alle", "it has 'ü' at position 14"),
        ("t@g", "it has '@' at position 1"),
        ("x" * 128, "it has 128 characters; 127 are allowed"),
        ("%RETRY%" + "x" * 249, "it has 256 characters; 255 are allowed"),
    ],
)
def test_bad_topic_names_are_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(TopicNameError) as refused:
        check_topic_name(name)
    assert words in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    "name", ["orders", "0", "%DLQ%g", "a|b_c-D9", "x" * 127, "%RETRY%" + "x" * 248]
)
def test_good_topic_names_pass(name: str) -> None:
    check_topic_name(name)


def test_topic_name_limit_is_the_callers() -> None:
    check_topic_name("x" * 200, limit=200)
    with pytest.raises(TopicNameError, match="11 characters; 10 are allowed"):
        check_topic_name("x" * 11, limit=10)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "consumer group name '': it is empty"),
        ("a b", "it has ' ' at position 1"),
        ("g" * 121, "it has 121 characters; 120 are allowed"),
    ],
)
def test_bad_group_names_are_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(GroupNameError) as refused:
        check_group_name(name)
    assert words in str(refused.value)


@pytest.mark.parametrize("name", ["billing", "CID_ONS-HTTP-PROXY", "g" * 120])
def test_good_group_names_pass(name: str) -> None:
    check_group_name(name)


def test_names_that_apaches_broker_stored_pass(golden_files: dict[str, bytes]) -> None:
    topics, groups = (
        loads(golden_files["topics.json"]),
        loads(golden_files["subscriptionGroup.json"]),
    )
    assert isinstance(topics, dict)
    assert isinstance(groups, dict)
    for topic in topics["topicConfigTable"]:
        check_topic_name(topic)
    for group in groups["subscriptionGroupTable"]:
        check_group_name(group)


@pytest.mark.parametrize(
    "name",
    [
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "rmq_sys_wheel_timer",
        "rmq_sys_REVIVE_LOG_LabCluster",
        "TBW102",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "BenchmarkTest",
    ],
)
def test_topics_of_the_system_are_known_and_reserved(name: str) -> None:
    assert is_system_topic(name)
    assert is_reserved_topic(name)


@pytest.mark.parametrize("name", [retry_topic("g"), dead_letter_topic("g")])
def test_retry_and_dead_letter_topics_are_of_the_system_but_may_be_made(name: str) -> None:
    assert is_system_topic(name)
    assert not is_reserved_topic(name)
    assert not is_sending_forbidden(name)


def test_users_topics_are_not_of_the_system() -> None:
    assert not is_system_topic("orders")


def test_nobody_sends_to_the_schedule_topic_but_anybody_to_the_benchmark() -> None:
    assert is_sending_forbidden("SCHEDULE_TOPIC_XXXX")
    assert not is_sending_forbidden("BenchmarkTest")
