"""The Spark and the store of the connector's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.connector.conftest import apache_store, spark, store

__all__ = ["apache_store", "spark", "store"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and "spark" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))
