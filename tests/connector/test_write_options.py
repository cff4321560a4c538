"""The options of writing, as Spark hands them over: names in lower case, values as text."""

from __future__ import annotations

import pickle

import pytest

from rocketpy.connector.option_tables import WRITE_OPTIONS
from rocketpy.connector.options import OptionError
from rocketpy.connector.sink import OutputModeError
from rocketpy.connector.write_options import WriteOptions


def test_all_options_are_read() -> None:
    given = {
        "path": "/data/s",
        "topic": "t",
        "queues": "3",
        "compress": "LZ4",
        "propertycolumns": "region, channel",
        "txnappid": "app",
        "txnversion": "7",
        "locktimeout": "5m",
        "checkpointlocation": "c",
        "queryname": "q",
    }
    assert given.keys() == {option.name.lower() for option in WRITE_OPTIONS}
    assert WriteOptions.parse(given) == WriteOptions(
        path="/data/s",
        topic="t",
        queues=3,
        compress="lz4",
        property_columns=("region", "channel"),
        app_id="app",
        version=7,
        lock_timeout_s=300,
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "'path' .*is missing"),
        ({"path": "dbfs:/s"}, "'path' .*'dbfs:' is no file system"),
        ({"path": "s", "locktimeout": "10"}, "'lockTimeout' .*a time with its unit"),
        ({"path": "s", "txnappid": "a"}, "'txnVersion' .*'txnAppId' means nothing without it"),
        ({"path": "s", "txnversion": "1"}, "'txnAppId' .*'txnVersion' means nothing without it"),
        ({"path": "s", "txnappid": "a", "txnversion": "-1"}, "'txnVersion' .*at least 0"),
        ({"path": "s", "txnappid": "a", "txnversion": "x"}, "'txnVersion' .*is 'x'"),
        ({"path": "s", "propertycolumns": "body"}, "'propertyColumns' .*'body' is written as"),
        ({"path": "s", "propertycolumns": "KEYS"}, "'propertyColumns' .*that the store writes"),
        ({"path": "s", "topic": "a b"}, "'topic' .*it has ' ' at position 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        WriteOptions.parse(options)


def test_the_error_about_modes_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(OutputModeError("do this")))
    assert str(error) == str(OutputModeError("do this"))
