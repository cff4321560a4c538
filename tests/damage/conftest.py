"""Stores to be damaged, built once; each test works on copies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.damage.small_store import TINY, Original, build


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """Records with check sums, extended queues."""
    return build(tmp_path_factory.mktemp("damage") / "store", TINY)


@pytest.fixture(scope="session")
def unchecked(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """Records as Apache's broker writes them by default: only bodies have a check sum."""
    config = replace(TINY, record_checksum=False, consume_queue_ext=False)
    return build(tmp_path_factory.mktemp("unchecked") / "store", config)
