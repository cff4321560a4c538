"""The options of writing, as Spark hands them over: names in lower case, values as text."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.net.client_tls import ClientTls
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.option_tables import WRITE_OPTIONS
from rocketpy.connector.options import OptionError
from rocketpy.connector.sink import OutputModeError
from rocketpy.connector.write_options import WriteOptions


def test_all_options_are_read(tmp_path: Path) -> None:
    path = {"path": "/data/s", "locktimeout": "5m"}
    credentials = tmp_path / "writer.yml"
    credentials.touch(mode=0o600)
    credentials.write_text("accessKey: writer\nsecretKey: s\n")
    cluster = {
        "namesrvaddr": "ns1:9876;ns2:9876",
        "credentials": str(credentials),
        "tls": "on",
        "requesttimeout": "2s",
        "retrytimeout": "0s",
    }
    given = {
        "topic": "t",
        "queues": "3",
        "compress": "LZ4",
        "propertycolumns": "region, channel",
        "txnappid": "app",
        "txnversion": "7",
        "checkpointlocation": "c",
        "queryname": "q",
    }
    named = {*path, *cluster, *given}
    assert named == {option.name.lower() for option in WRITE_OPTIONS}
    expected = WriteOptions(
        topic="t",
        queues=3,
        compress="lz4",
        property_columns=("region", "channel"),
        app_id="app",
        version=7,
    )
    assert WriteOptions.parse(given | path) == replace(expected, path="/data/s", lock_timeout_s=300)
    servers = ClusterAddress(("ns1:9876", "ns2:9876"))
    access = ClusterAccess(servers, 2, Credentials("writer", "s"), ClientTls())
    assert WriteOptions.parse(given | cluster) == replace(
        expected, cluster=ClusterOptions(access=access, retry_s=0)
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "'path' .*is missing"),
        ({"path": "dbfs:/s"}, "'path' .*'dbfs:' is no file system"),
        ({"path": "s", "namesrvaddr": "a:1"}, "'namesrvAddr' .*together with 'path'"),
        ({"namesrvaddr": "a:1", "locktimeout": "1s"}, "'lockTimeout' .*give 'retryTimeout'"),
        ({"path": "s", "retrytimeout": "1s"}, "'retryTimeout' .*is for clusters"),
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
