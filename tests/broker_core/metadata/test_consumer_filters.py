from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.filters.bloom import BloomBits
from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.consumer_filters import ConsumerFilter, ConsumerFilterTable

# As Apache's broker 5.5.0 writes it: see the facts in docs/filters.md.
FILE = """{
	"filterDataByTopic":{
		"t":{
			"groupFilterData":{
				"g":{
					"bloomFilterData":{
						"bitNum":112,
						"bitPos":[22,87,58]
					},
					"bornTime":1794786800000,
					"clientVersion":1794786799999,
					"consumerGroup":"g",
					"dead":false,
					"deadTime":0,
					"expression":"region = 'eu'",
					"expressionType":"SQL92",
					"topic":"t"
				}
			},
			"topic":"t"
		}
	}
}"""


@pytest.fixture
def table(config_file: Callable[[str], ConfigFile], tmp_path: Path) -> ConsumerFilterTable:
    (tmp_path / ConsumerFilterTable.FILE_NAME).write_text(FILE)
    return ConsumerFilterTable(config_file(ConsumerFilterTable.FILE_NAME))


def test_a_groups_filter_is_read(table: ConsumerFilterTable) -> None:
    assert table.all() == {
        ("t", "g"): ConsumerFilter(
            topic="t",
            group="g",
            expression="region = 'eu'",
            expression_type="SQL92",
            born_ms=1794786800000,
            dead_ms=0,
            bits=BloomBits(112, (22, 87, 58)),
        )
    }
    assert table.get("t", "g") == table.all()["t", "g"]
    assert table.get("t", "other") is None


def test_bits_are_of_the_registered_filter_alone(table: ConsumerFilterTable) -> None:
    bits = table.bits_of("t", "g", "region = 'eu'")
    assert bits is not None
    assert (bits.bits, bits.after_ms) == (BloomBits(112, (22, 87, 58)), 1794786800000)
    assert table.bits_of("t", "g", "region = 'us'") is None
    assert table.bits_of("u", "g", "region = 'eu'") is None


def test_apaches_file_without_filters_is_read(golden_config: Path, disk: Replaces) -> None:
    file = ConfigFile(golden_config / ConsumerFilterTable.FILE_NAME, disk)
    assert ConsumerFilterTable(file).all() == {}


def test_no_file_is_no_filters(config_file: Callable[[str], ConfigFile]) -> None:
    table = ConsumerFilterTable(config_file("missing.json"))
    assert table.all() == {}
    assert table.bits_of("t", "g", "a = 1") is None


def test_a_file_that_is_not_understood_is_named(
    config_file: Callable[[str], ConfigFile], tmp_path: Path
) -> None:
    (tmp_path / ConsumerFilterTable.FILE_NAME).write_text(FILE.replace("112", '"many"'))
    table = ConsumerFilterTable(config_file(ConsumerFilterTable.FILE_NAME))
    with pytest.raises(MetadataError, match="'bitNum' of 'bloomFilterData' is 'many'"):
        table.all()
