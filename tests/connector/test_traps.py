"""Traps of Spark's API for Python sources that no other file here is about."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    SimpleDataSourceStreamReader,
)
from tests.connector.streams import reader_of, send

import rocketpy
from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.data_loss import DataLossError, Loss
from rocketpy.connector.offsets import MessageQueue, OffsetFormatError
from rocketpy.connector.options import OptionError
from rocketpy.connector.source import RocketPyDataSource
from rocketpy.connector.stream_reader import StreamReader


def test_a_reader_that_has_files_open_is_sent_to_tasks_without_them(store: rocketpy.Store) -> None:
    send(store, "a", "b")
    planner = reader_of(store, topic="orders", startingOffsets="earliest")
    start = planner.initialOffset()
    end = planner.latestOffset(start, planner.getDefaultReadLimit())
    assert "_backend" in vars(planner)
    copy, partitions = pickle.loads(pickle.dumps((planner, planner.partitions(start, end))))
    assert isinstance(copy, StreamReader)
    assert "_backend" not in vars(copy)
    batches = [batch for part in partitions for batch in copy.read(part)]
    assert [body for batch in batches for body in batch["body"].to_pylist()] == [b"a", b"b"]
    # The copy of a planner plans on, too.
    assert copy.latestOffset(end, copy.getDefaultReadLimit()) == end


@pytest.mark.parametrize(
    "error",
    [
        DataLossError((Loss(MessageQueue("orders", "b", 0), 1, None, "gone"),)),
        OffsetFormatError("{}", "it has no version"),
        OptionError("topic", "is missing"),
    ],
)
def test_errors_come_back_from_another_process_as_they_were(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_nothing_waits_for_a_stop_that_spark_does_not_call() -> None:
    # All that it does is to keep a process that ends from printing: no clean-up is in it.
    assert StreamReader.stop.__code__.co_names == ("expect_hang_up",)


def test_nothing_is_read_on_the_driver() -> None:
    assert not issubclass(StreamReader, SimpleDataSourceStreamReader)
    assert RocketPyDataSource.simpleStreamReader is DataSource.simpleStreamReader


def test_filters_are_not_pushed_down_for_spark_then_gives_wrong_answers() -> None:
    assert BatchReader.pushFilters is DataSourceReader.pushFilters


def test_spark_finds_the_format_with_a_python_that_lacks_pyarrow() -> None:
    """It then says what is missing when something is read; in its look it would say nothing."""
    program = (
        "import sys; sys.modules['pyarrow'] = sys.modules['numpy'] = None\n"
        "from pyspark_rocketpy import DefaultSource\n"
        "source = DefaultSource({'path': 'store', 'topic': 'orders'})\n"
        "print(source.name())\n"
        "source.schema()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "rocketpy\n"
    assert "ModuleNotFoundError: import of numpy halted" in done.stderr
