"""Settings that cannot be are refused by name."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.config import ConfigError, StoreConfig
from rocketpy.broker_core.message import Host


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commit_log_file_size", 4095),
        ("consume_queue_file_entries", 0),
        ("consume_queue_ext_file_size", 63),
        ("index_slots", 0),
        ("index_entries", 1),
        ("max_topic_length", 0),
        ("max_topic_length", 128),
        ("max_properties_length", -1),
        ("max_properties_length", 32_768),
        ("max_message_size", 0),
        ("delete_when_hour", 24),
        ("default_topic_queues", 0),
        ("store_host", Host("::1", 10911)),
        ("delay_levels", "1x"),
        ("delay_levels", ""),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"StoreConfig\.{name} cannot be ") as caught:
        StoreConfig(**{name: value})  # type: ignore[arg-type]
    assert (caught.value.name, caught.value.value) == (name, value)


def test_small_files_need_no_other_limit() -> None:
    # The record is held against the file when it is sent.
    assert StoreConfig(commit_log_file_size=4096).max_message_size == 4 << 20


def test_a_commit_log_file_of_two_gibibytes_is_refused() -> None:
    # Places in a file are 32-bit numbers, in Arrow's views as in Java's buffers.
    with pytest.raises(ConfigError, match="commit_log_file_size"):
        StoreConfig(commit_log_file_size=1 << 31)


def test_the_defaults_are_apaches() -> None:
    config = StoreConfig()
    assert config.commit_log_file_size == 1 << 30
    assert config.consume_queue_file_entries == 300_000
    assert (config.index_slots, config.index_entries) == (5_000_000, 20_000_000)
    assert config.max_message_size == 4 << 20
    assert (config.retention_hours, config.delete_when_hour) == (72, 4)


@pytest.mark.parametrize(
    ("level", "delay_ms"), [(1, 1_000), (3, 10_000), (5, 60_000), (18, 7_200_000), (19, 7_200_000)]
)
def test_a_delay_level_has_its_time(level: int, delay_ms: int) -> None:
    assert StoreConfig().delay_ms(level) == delay_ms


def test_delay_levels_can_be_set_in_days() -> None:
    assert StoreConfig(delay_levels="1s 2d").delay_ms(2) == 2 * 86_400_000
