"""A small store with a clock that is turned by hand, checked and closed after each test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock

SMALL = rocketpy.StoreConfig(
    commit_log_file_size=4096,
    max_message_size=3000,
    consume_queue_file_entries=5,
    consume_queue_ext_file_size=128,
    index_slots=5,
    index_entries=20,
    retention_hours=None,
)


@pytest.fixture
def small() -> rocketpy.StoreConfig:
    """Files of a few messages each, so that every test rolls them."""
    return SMALL


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "store"


@pytest.fixture
def store(path: Path, small: rocketpy.StoreConfig, clock: ManualClock) -> Iterator[rocketpy.Store]:
    """A new store with a topic `t` of one queue and a topic `wide` of four."""
    with rocketpy.open(path, config=small, clock=clock) as opened:
        opened.create_topic("t", queues=1)
        opened.create_topic("wide", queues=4)
        yield opened
    with rocketpy.open(path, config=small, read_only=True) as closed:
        assert list(closed.verify()) == []


@pytest.fixture
def roomy(small: rocketpy.StoreConfig) -> rocketpy.StoreConfig:
    """Files that hold all messages of a test, for those that look into one."""
    return replace(
        small,
        commit_log_file_size=1 << 16,
        consume_queue_file_entries=200,
        index_slots=125,
        index_entries=500,
    )
