from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.delay_offsets import DelayOffsets


@pytest.fixture
def delays(config_file: Callable[[str], ConfigFile]) -> DelayOffsets:
    return DelayOffsets(config_file(DelayOffsets.FILE_NAME))


@pytest.fixture
def golden(golden_config: Path, disk: Replaces) -> ConfigFile:
    return ConfigFile(golden_config / DelayOffsets.FILE_NAME, disk)


def test_apaches_levels_are_read(golden: ConfigFile) -> None:
    delays = DelayOffsets(golden)
    assert delays.all() == {1: 1, 3: 3, 18: 0}
    assert (delays.get(3), delays.get(4)) == (3, 0)


def test_put_changes_only_its_level_in_apaches_file(golden: ConfigFile) -> None:
    before = golden.path.read_bytes()
    DelayOffsets(golden).put(3, 4)
    assert golden.path.read_bytes() == before.replace(b"3:3", b"3:4")


def test_new_level_is_put_in_order(golden: ConfigFile) -> None:
    DelayOffsets(golden).put_all({2: 9, 1: 5})
    assert list(golden.load()["offsetTable"].items()) == [(1, 5), (2, 9), (3, 3), (18, 0)]


def test_unknown_members_survive(golden: ConfigFile) -> None:
    golden.path.write_bytes(golden.path.read_bytes()[:-1] + b',"zNew":{"0":{1:2}}}')
    DelayOffsets(golden).put(1, 2)
    assert golden.load()["zNew"] == {"0": {1: 2}}


def test_new_file_is_as_apaches_broker_would_write_it(delays: DelayOffsets, tmp_path: Path) -> None:
    delays.put(18, 3)
    assert (tmp_path / "delayOffset.json").read_bytes() == (
        b'{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,\n\t\t"timestamp":0\n\t},\n'
        b'\t"offsetTable":{\n\t\t18:3\n\t}\n}'
    )


def test_same_offset_again_writes_nothing(delays: DelayOffsets, tmp_path: Path) -> None:
    delays.put(1, 1)
    delays.put(1, 1)
    assert not (tmp_path / "delayOffset.json.bak").exists()


@pytest.mark.parametrize(("level", "at"), [(0, 1), (1, -1)])
def test_levels_count_from_one_and_offsets_from_zero(
    level: int, at: int, delays: DelayOffsets
) -> None:
    with pytest.raises(ValueError, match="levels count from 1"):
        delays.put(level, at)


def test_table_of_the_wrong_shape_is_named(delays: DelayOffsets, tmp_path: Path) -> None:
    (tmp_path / "delayOffset.json").write_bytes(b'{"offsetTable":{"x":1}}')
    with pytest.raises(MetadataError, match="'offsetTable' does not map delay levels"):
        delays.all()
