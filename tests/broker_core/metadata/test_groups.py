from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import GroupNameError
from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.groups import GroupConfig, GroupTable


@pytest.fixture
def groups(config_file: Callable[[str], ConfigFile]) -> GroupTable:
    return GroupTable(config_file(GroupTable.FILE_NAME))


@pytest.fixture
def golden(golden_config: Path, disk: Replaces) -> ConfigFile:
    return ConfigFile(golden_config / GroupTable.FILE_NAME, disk)


def test_apaches_groups_have_our_defaults(golden: ConfigFile) -> None:
    groups = GroupTable(golden).all()
    assert len(groups) == 13
    assert all(config == GroupConfig(name) for name, config in groups.items())


def test_new_group_is_written_with_apaches_members(golden: ConfigFile) -> None:
    GroupTable(golden).put(GroupConfig("zz_new"), now_ms=1)
    table = golden.load()["subscriptionGroupTable"]
    assert list(table)[-1] == "zz_new"
    assert table["zz_new"] == table["lab_group"] | {"groupName": "zz_new"}
    assert list(table["zz_new"]) == list(table["lab_group"])


def test_put_changes_only_the_group_and_the_version(golden: ConfigFile) -> None:
    before = golden.path.read_bytes()
    GroupTable(golden).put(GroupConfig("lab_group"), now_ms=1794786842761)
    expected = before.replace(b'"counter":5', b'"counter":6')
    assert golden.path.read_bytes() == expected.replace(b"1794786842760", b"1794786842761")


def test_new_file_has_the_members_of_apaches(groups: GroupTable, tmp_path: Path) -> None:
    groups.put(GroupConfig("billing"), now_ms=5)
    assert (tmp_path / "subscriptionGroup.json").read_bytes().startswith(
        b'{\n\t"dataVersion":{\n\t\t"counter":1,\n\t\t"stateVersion":0,\n\t\t"timestamp":5\n\t},\n'
        b'\t"forbiddenTable":{},\n\t"subscriptionGroupTable":{\n\t\t"billing":{\n'
        b'\t\t\t"attributes":{},\n\t\t\t"brokerId":0,\n'
    )  # fmt: skip


def test_every_field_comes_back(groups: GroupTable) -> None:
    config = GroupConfig(
        "billing",
        consume_enabled=False,
        consume_from_min_enabled=False,
        consume_broadcast_enabled=False,
        consume_message_orderly=True,
        consume_timeout_minutes=1,
        retry_queues=2,
        retry_max_times=3,
        retry_policy={"type": "EXPONENTIAL", "exponentialRetryPolicy": {"max": 7200000}},
        broker_id=4,
        which_broker_when_consume_slowly=5,
        notify_consumer_ids_changed_enabled=False,
        sys_flag=6,
        attributes={"a": "b"},
    )
    groups.put(config, now_ms=1)
    assert groups.get("billing") == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert groups.get("no-such-group") is None


def test_unknown_members_survive_a_change(golden: ConfigFile) -> None:
    data = golden.path.read_bytes()
    data = data.replace(b'"lab_group":{', b'"lab_group":{"subscriptionDataSet":[{"topic":"t"}],')
    golden.path.write_bytes(data.replace(b'"forbiddenTable":{}', b'"forbiddenTable":{"g":{"t":1}}'))
    GroupTable(golden).put(GroupConfig("lab_group", retry_max_times=2), now_ms=1)
    document = golden.load()
    group = document["subscriptionGroupTable"]["lab_group"]
    assert group["subscriptionDataSet"] == [{"topic": "t"}]
    assert group["retryMaxTimes"] == 2
    assert document["forbiddenTable"] == {"g": {"t": 1}}


def test_delete_takes_the_group_and_what_was_forbidden_to_it(golden: ConfigFile) -> None:
    data = golden.path.read_bytes()
    forbidden = b'"forbiddenTable":{"lab_group":{"t":1},"dump_group":{"t":2}}'
    golden.path.write_bytes(data.replace(b'"forbiddenTable":{}', forbidden))
    groups = GroupTable(golden)
    assert groups.delete("lab_group", now_ms=7)
    assert groups.get("lab_group") is None
    assert golden.load()["forbiddenTable"] == {"dump_group": {"t": 2}}
    assert not groups.delete("lab_group", now_ms=8)
    assert golden.load()["dataVersion"] == {"counter": 6, "stateVersion": 0, "timestamp": 7}


def test_bad_name_is_refused(groups: GroupTable) -> None:
    with pytest.raises(GroupNameError, match="121 characters; 120 are allowed"):
        groups.put(GroupConfig("g" * 121), now_ms=1)


def test_many_groups_are_one_change_of_the_file(golden: ConfigFile) -> None:
    before = golden.load()
    wanted = [GroupConfig("zz_a"), GroupConfig("lab_group", retry_queues=7)]
    GroupTable(golden).put_many(wanted, now_ms=9)
    after = golden.load()
    assert after["dataVersion"]["counter"] == before["dataVersion"]["counter"] + 1
    assert GroupTable(golden).get("lab_group") == wanted[1]
    assert GroupTable(golden).get("zz_a") == wanted[0]


def test_no_groups_at_all_write_nothing(golden: ConfigFile) -> None:
    before = golden.path.stat()
    GroupTable(golden).put_many([], now_ms=9)
    assert golden.path.stat() == before
