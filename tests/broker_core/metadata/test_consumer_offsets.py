from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rocketpy.broker_core.errors import GroupNameError, MetadataError, TopicNameError
from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.consumer_offsets import CommittedOffset, OffsetTable


@pytest.fixture
def offsets(config_file: Callable[[str], ConfigFile]) -> OffsetTable:
    return OffsetTable(config_file(OffsetTable.FILE_NAME))


@pytest.fixture
def golden(golden_config: Path, disk: Replaces) -> ConfigFile:
    return ConfigFile(golden_config / OffsetTable.FILE_NAME, disk)


def test_apaches_offsets_are_read(golden: ConfigFile) -> None:
    offsets = OffsetTable(golden)
    assert offsets.committed("lab_group_tags", "lab_tags") == {0: 2, 1: 3, 2: 3, 3: 2}
    assert offsets.committed("lab_group_tags", "no-such-topic") == {}
    rows = offsets.all()
    assert len(rows) == 15
    assert rows[0] == CommittedOffset("lab_group", "%RETRY%lab_group", 0, 2)


def test_commit_changes_only_its_queues_in_apaches_file(golden: ConfigFile) -> None:
    before = golden.path.read_bytes()
    OffsetTable(golden).commit("lab_group_tags", "lab_tags", {1: 30, 2: 40})
    expected = before.replace(b"1:3,\n\t\t\t2:3,\n\t\t\t3:2", b"1:30,\n\t\t\t2:40,\n\t\t\t3:2", 1)
    assert golden.path.read_bytes() == expected
    assert golden.backup_path.read_bytes() == before


def test_new_topic_is_added_to_the_groups_map(golden: ConfigFile) -> None:
    before = golden.load()
    OffsetTable(golden).commit("lab_group", "lab_new", {0: 1})
    document = golden.load()
    assert document["groupTopicMap"] == {
        **before["groupTopicMap"],
        "lab_group": ["lab_retry", "%RETRY%lab_group", "lab_new"],
    }
    assert document["pullOffsetTable"] == before["pullOffsetTable"]
    assert document["dataVersion"] == before["dataVersion"]


def test_new_file_is_as_apaches_broker_would_write_it(offsets: OffsetTable, tmp_path: Path) -> None:
    offsets.commit("billing", "orders", {2: 7, 0: 5})
    assert (tmp_path / "consumerOffset.json").read_bytes() == (
        b'{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,\n\t\t"timestamp":0\n\t},\n'
        b'\t"groupTopicMap":{\n\t\t"billing":[\n\t\t\t"orders"\n\t\t]\n\t},\n'
        b'\t"offsetTable":{\n\t\t"orders@billing":{\n\t\t\t0:5,\n\t\t\t2:7\n\t\t}\n\t},\n'
        b'\t"pullOffsetTable":{}\n}'
    )


def test_unknown_members_survive_a_commit(golden: ConfigFile) -> None:
    data = golden.path.read_bytes()
    data = data.replace(b'"offsetTable":{', b'"offsetTable":{"odd-key":{},"a@b@c":{5:6},', 1)
    golden.path.write_bytes(data[:-1] + b',"resetOffsetTable":{"t@g":{0:9}}}')
    offsets = OffsetTable(golden)
    offsets.commit("lab_group", "lab_retry", {0: 3})
    document = golden.load()
    assert document["resetOffsetTable"] == {"t@g": {0: 9}}
    assert document["offsetTable"]["odd-key"] == {}
    assert document["offsetTable"]["a@b@c"] == {5: 6}
    assert len(offsets.all()) == 15


def test_same_offsets_again_write_nothing(golden: ConfigFile) -> None:
    before = golden.path.stat()
    OffsetTable(golden).commit("lab_group_tags", "lab_tags", {1: 3})
    assert golden.path.stat().st_ino == before.st_ino
    assert golden.path.stat().st_mtime_ns == before.st_mtime_ns


def test_empty_commit_writes_nothing(offsets: OffsetTable, tmp_path: Path) -> None:
    offsets.commit("billing", "orders", {})
    assert list(tmp_path.iterdir()) == []


def test_going_back_is_allowed_and_told(
    offsets: OffsetTable, caplog: pytest.LogCaptureFixture
) -> None:
    offsets.commit("billing", "orders", {0: 5})
    offsets.commit("billing", "orders", {0: 3})
    assert offsets.committed("billing", "orders") == {0: 3}
    assert "group billing goes back in orders/0: from 5 to 3" in caplog.text


def test_reset_forgets_the_other_queues(offsets: OffsetTable) -> None:
    offsets.commit("billing", "orders", {0: 5, 1: 6})
    offsets.reset("billing", "orders", {1: 0})
    assert offsets.committed("billing", "orders") == {1: 0}


def test_reset_to_nothing_is_as_if_never_committed(golden: ConfigFile) -> None:
    OffsetTable(golden).reset("lab_group_tags", "lab_tags", {})
    assert "lab_tags@lab_group_tags" not in golden.load()["offsetTable"]
    assert "lab_group_tags" not in golden.load()["groupTopicMap"]


def test_delete_forgets_one_topic_or_the_whole_group(golden: ConfigFile) -> None:
    offsets = OffsetTable(golden)
    pulled = golden.load()["pullOffsetTable"]
    assert offsets.delete("lab_group", "lab_retry")
    assert golden.load()["groupTopicMap"]["lab_group"] == ["%RETRY%lab_group"]
    assert not offsets.delete("lab_group", "lab_retry")
    assert offsets.delete("lab_group")
    assert "lab_group" not in {row.group for row in offsets.all()}
    assert "lab_group" not in golden.load()["groupTopicMap"]
    assert golden.load()["pullOffsetTable"] == pulled
    assert not offsets.delete("lab_group")


def test_quoted_queues_of_strict_json_are_read_and_written_bare(
    offsets: OffsetTable, tmp_path: Path
) -> None:
    path = tmp_path / "consumerOffset.json"
    path.write_bytes(b'{"offsetTable":{"t@g":{"1":5,"0":4}}}')
    assert offsets.committed("g", "t") == {0: 4, 1: 5}
    offsets.commit("g", "t", {1: 6})
    assert b"{\n\t\t\t0:4,\n\t\t\t1:6\n\t\t}" in path.read_bytes()


def test_numpy_integers_are_integers(offsets: OffsetTable) -> None:
    offsets.commit("g", "t", {np.int32(1): np.int64(2)})  # type: ignore[dict-item]
    assert offsets.committed("g", "t") == {1: 2}


@pytest.mark.parametrize("queues", ['{0:"x"}', '{"x":1}', "{0:1.5}", "{0:null}", "[]"])
def test_offsets_of_the_wrong_shape_are_named(
    queues: str, offsets: OffsetTable, tmp_path: Path
) -> None:
    (tmp_path / "consumerOffset.json").write_text(f'{{"offsetTable":{{"t@g":{queues}}}}}')
    with pytest.raises(MetadataError, match="'t@g'"):
        offsets.committed("g", "t")


def test_bad_names_and_negative_numbers_are_refused(offsets: OffsetTable, tmp_path: Path) -> None:
    with pytest.raises(GroupNameError, match="'@' at position 1"):
        offsets.commit("a@b", "t", {0: 1})
    with pytest.raises(TopicNameError, match="'@' at position 1"):
        offsets.commit("g", "a@b", {0: 1})
    with pytest.raises(ValueError, match="offset -1 of 't' queue 0: neither may be negative"):
        offsets.commit("g", "t", {0: -1})
    assert list(tmp_path.iterdir()) == []


COMMITTER = """
import fcntl, os, sys
from pathlib import Path
from rocketpy.broker_core.metadata import ConfigFile, OffsetTable

class Disk:  # atomic, but without the real one's thousands of fsyncs
    def replace(self, path, data):
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(data)
        temporary.replace(path)

folder, queue = Path(sys.argv[1]), int(sys.argv[2])
offsets = OffsetTable(ConfigFile(folder / "consumerOffset.json", Disk()))
with open(folder / "lock", "w") as lock:
    for n in range(1, 101):
        fcntl.lockf(lock, fcntl.LOCK_EX)
        mine = offsets.committed("g", "t")
        assert mine.get(queue, 0) == n - 1, (queue, n, mine)
        offsets.commit("g", "t", {queue: n})
        offsets.commit(f"g{queue}", f"t{n % 5}", {n: 1})
        fcntl.lockf(lock, fcntl.LOCK_UN)
"""


def test_processes_that_take_turns_under_a_lock_lose_no_commit(
    offsets: OffsetTable, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMMITTER, str(tmp_path), str(queue)], env=environment
        )
        for queue in (0, 1)
    ]
    while any(process.poll() is None for process in processes):
        offsets.committed("g", "t")  # a reader without the lock meets whole files only
    assert [process.wait() for process in processes] == [0, 0]
    assert offsets.committed("g", "t") == {0: 100, 1: 100}
    assert len(offsets.all()) == 2 + 2 * 100


def test_many_commits_are_one_write_and_the_same_as_one_by_one(
    golden: ConfigFile, tmp_path: Path, disk: Replaces
) -> None:
    writes: list[Path] = []

    class CountingDisk:
        def replace(self, path: Path, data: bytes) -> None:
            writes.append(path)
            disk.replace(path, data)

    commits = {
        ("lab_group", "lab_new"): {0: 1},
        ("lab_group_tags", "lab_tags"): {1: 30, 2: 1},
        ("fresh", "lab_new"): {3: 4},
        ("fresh", "lab_tags"): {0: 9},
    }
    apart = ConfigFile(tmp_path / "apart.json", disk)
    apart.path.write_bytes(golden.path.read_bytes())
    OffsetTable(ConfigFile(golden.path, CountingDisk())).commit_many(commits)
    for (group, topic), offsets in commits.items():
        OffsetTable(apart).commit(group, topic, offsets)
    assert golden.path.read_bytes() == apart.path.read_bytes()
    assert writes == [golden.backup_path, golden.path]


def test_many_commits_of_what_is_there_write_nothing(golden: ConfigFile) -> None:
    before = golden.path.stat()
    OffsetTable(golden).commit_many({("lab_group_tags", "lab_tags"): {0: 2}, ("g", "t"): {}})
    assert golden.path.stat() == before
    assert OffsetTable(golden).committed("g", "t") == {}


def test_one_bad_name_among_many_commits_changes_nothing(golden: ConfigFile) -> None:
    before = golden.path.read_bytes()
    with pytest.raises(GroupNameError):
        OffsetTable(golden).commit_many({("lab_group", "lab_new"): {0: 1}, ("a b", "t"): {0: 1}})
    assert golden.path.read_bytes() == before
