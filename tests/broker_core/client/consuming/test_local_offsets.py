from __future__ import annotations

from pathlib import Path

import pytest

from rocketpy.broker_core.client.consuming.local_offsets import LocalOffsets, default_path
from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.message_queue import MessageQueue

OFFSETS = {MessageQueue("orders", "broker-a", 1): 12, MessageQueue("orders", "broker-b", 0): 0}


def test_offsets_are_read_as_they_were_saved(tmp_path: Path) -> None:
    file = LocalOffsets(tmp_path / "10.0.0.1@DEFAULT" / "g" / "offsets.json")
    assert file.load() == {}
    file.save(OFFSETS)
    assert LocalOffsets(file.path).load() == OFFSETS
    assert [each.name for each in file.path.parent.iterdir()] == ["offsets.json"]


def test_the_file_is_in_the_form_of_apaches(tmp_path: Path) -> None:
    file = LocalOffsets(tmp_path / "offsets.json")
    file.save({MessageQueue("orders", "broker-a", 1): 12})
    assert file.path.read_bytes() == (
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"orders"}:12}}'
    )
    file.path.write_text(
        '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":1,\n'
        '\t\t\t"topic":"orders"\n\t\t}:13\n\t}\n}'
    )
    assert file.load() == {MessageQueue("orders", "broker-a", 1): 13}


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = LocalOffsets(tmp_path / "offsets.json")
    file.path.write_bytes(b'{"offsetTable":{{"bro')
    with pytest.raises(MetadataError, match=r"offsets\.json"):
        file.load()


def test_the_path_is_apaches() -> None:
    path = default_path("10.0.0.1@DEFAULT", "g")
    assert path.parts[-4:] == (".rocketmq_offsets", "10.0.0.1@DEFAULT", "g", "offsets.json")
