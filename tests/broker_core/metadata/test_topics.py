from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import MetadataError, TopicNameError
from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.topics import TopicConfig, TopicTable


@pytest.fixture
def topics(config_file: Callable[[str], ConfigFile]) -> TopicTable:
    return TopicTable(config_file(TopicTable.FILE_NAME))


@pytest.fixture
def golden(golden_config: Path, disk: Replaces) -> ConfigFile:
    return ConfigFile(golden_config / TopicTable.FILE_NAME, disk)


def test_apaches_topics_are_read(golden: ConfigFile) -> None:
    topics = TopicTable(golden)
    assert len(topics.all()) == 33
    assert topics.get("lab_plain") == TopicConfig("lab_plain", read_queues=4, write_queues=4)
    schedule = topics.get("SCHEDULE_TOPIC_XXXX")
    assert schedule is not None
    assert (schedule.read_queues, schedule.is_readable, schedule.is_writable) == (18, True, True)
    assert topics.get("no-such-topic") is None


def test_new_file_is_as_apaches_broker_would_write_it(topics: TopicTable, tmp_path: Path) -> None:
    topics.put(TopicConfig("orders", read_queues=4, write_queues=4), now_ms=1794786842760)
    assert (tmp_path / "topics.json").read_bytes() == (
        b'{\n\t"dataVersion":{\n\t\t"counter":1,\n\t\t"stateVersion":0,\n'
        b'\t\t"timestamp":1794786842760\n\t},\n\t"topicConfigTable":{\n\t\t"orders":{\n'
        b'\t\t\t"attributes":{},\n\t\t\t"order":false,\n\t\t\t"perm":6,\n'
        b'\t\t\t"readQueueNums":4,\n\t\t\t"topicFilterType":"SINGLE_TAG",\n'
        b'\t\t\t"topicName":"orders",\n\t\t\t"topicSysFlag":0,\n\t\t\t"writeQueueNums":4\n'
        b"\t\t}\n\t}\n}"
    )


def test_put_changes_only_the_topic_and_the_version(golden: ConfigFile) -> None:
    before = golden.path.read_bytes()
    config = TopicConfig("lab_plain", read_queues=4, write_queues=4)
    TopicTable(golden).put(config, now_ms=1794786842761)
    expected = before.replace(b'"counter":18', b'"counter":19')
    expected = expected.replace(b"1794786842760", b"1794786842761")
    assert golden.path.read_bytes() == expected
    assert golden.backup_path.read_bytes() == before


def test_unknown_members_survive_a_change(golden: ConfigFile) -> None:
    data = golden.path.read_bytes()
    data = data.replace(
        b'{\n\t"dataVersion":{', b'{\n\t"aNewTable":{0:[1]},\n\t"dataVersion":{"x":1,'
    )
    data = data.replace(b'"lab_plain":{', b'"lab_plain":{"zNew":{"deep":[null,1.5]},')
    golden.path.write_bytes(data)
    topics = TopicTable(golden)
    topics.put(TopicConfig("lab_plain", read_queues=8), now_ms=1)
    topics.put(TopicConfig("lab_tags", read_queues=8), now_ms=2)
    document = golden.load()
    assert document["aNewTable"] == {0: [1]}
    assert document["dataVersion"] == {"x": 1, "counter": 20, "stateVersion": 0, "timestamp": 2}
    assert document["topicConfigTable"]["lab_plain"]["zNew"] == {"deep": [None, 1.5]}
    assert document["topicConfigTable"]["lab_plain"]["readQueueNums"] == 8


def test_every_field_comes_back(topics: TopicTable) -> None:
    config = TopicConfig(
        "orders",
        read_queues=1,
        write_queues=2,
        perm=4,
        order=True,
        topic_filter_type="MULTI_TAG",
        sys_flag=3,
        attributes={"+message.type": "FIFO"},
    )
    topics.put(config, now_ms=1)
    assert topics.get("orders") == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(topics.get("orders"))


def test_attributes_of_a_topic_are_a_copy(topics: TopicTable) -> None:
    topics.put(TopicConfig("orders", attributes={"a": "1"}), now_ms=1)
    config = topics.get("orders")
    assert config is not None
    assert isinstance(config.attributes, dict)
    config.attributes["a"] = "2"
    assert topics.all()["orders"].attributes == {"a": "1"}


def test_topic_named_by_digits_stays_quoted(topics: TopicTable, tmp_path: Path) -> None:
    topics.put(TopicConfig("42"), now_ms=1)
    assert list(topics.all()) == ["42"]
    assert b'"42":{' in (tmp_path / "topics.json").read_bytes()


def test_delete_takes_one_topic_and_tells_whether_it_was_there(golden: ConfigFile) -> None:
    topics = TopicTable(golden)
    assert topics.delete("lab_plain", now_ms=7)
    assert topics.get("lab_plain") is None
    assert len(topics.all()) == 32
    assert golden.load()["dataVersion"]["counter"] == 19
    assert not topics.delete("lab_plain", now_ms=8)
    assert golden.load()["dataVersion"] == {"counter": 19, "stateVersion": 0, "timestamp": 7}


def test_bad_name_is_refused_and_nothing_is_written(topics: TopicTable, tmp_path: Path) -> None:
    with pytest.raises(TopicNameError):
        topics.put(TopicConfig("a/b"), now_ms=1)
    with pytest.raises(TopicNameError, match="5 characters; 4 are allowed"):
        topics.put(TopicConfig("abcde"), now_ms=1, name_limit=4)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"topicConfigTable":5}', "'topicConfigTable' of the file is 5, not of type dict"),
        (b'{"topicConfigTable":{"t":[]}}', r"'t' of 'topicConfigTable' is \[\], not of type dict"),
        (b'{"topicConfigTable":{"t":{"perm":"6"}}}', "'perm' of 't' is '6', not of type int"),
        (b'{"topicConfigTable":{"t":{"perm":true}}}', "'perm' of 't' is True, not of type int"),
    ],
)
def test_members_of_the_wrong_type_are_named(
    data: bytes, words: str, topics: TopicTable, tmp_path: Path
) -> None:
    (tmp_path / "topics.json").write_bytes(data)
    with pytest.raises(MetadataError, match=words):
        topics.all()


def test_members_that_an_older_broker_did_not_write_have_their_defaults(
    topics: TopicTable, tmp_path: Path
) -> None:
    (tmp_path / "topics.json").write_bytes(
        b'{"topicConfigTable":{"t":{"readQueueNums":8,"attributes":null}}}'
    )
    assert topics.get("t") == TopicConfig("t", read_queues=8)
