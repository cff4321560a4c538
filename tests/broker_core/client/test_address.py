from __future__ import annotations

import pickle

import pytest

from rocketpy.broker_core.client.address import (
    ClusterAddress,
    ClusterAddressError,
    is_cluster_address,
)


@pytest.mark.parametrize(
    ("text", "name_servers"),
    [
        ("rocketmq://ns1:9876", ("ns1:9876",)),
        ("rocketmq://ns1:9876;ns2:9877", ("ns1:9876", "ns2:9877")),
        ("rocketmq://ns1:9876,ns2:9877/", ("ns1:9876", "ns2:9877")),
        ("ROCKETMQ://ns1:9876; ns1:9876", ("ns1:9876",)),
        ("rocketmq://[::1]:9876;::1:9877", ("[::1]:9876", "::1:9877")),
    ],
)
def test_an_address_names_name_servers(text: str, name_servers: tuple[str, ...]) -> None:
    assert ClusterAddress.parse(text).name_servers == name_servers


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("shop-store", "does not begin with rocketmq://"),
        ("rocketmq://", "names no name server"),
        ("rocketmq://;", "names no name server"),
        ("rocketmq://ns1", "'ns1' is not host:port"),
        ("rocketmq://:9876", "':9876' is not host:port"),
        ("rocketmq://ns1:port", "no port between 1 and 65535"),
        ("rocketmq://ns1:65536", "no port between 1 and 65535"),
        ("rocketmq://ns1:0", "no port between 1 and 65535"),
        ("rocketmq://ns1/x:9876", "is not host:port"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example(text: str, reason: str) -> None:
    with pytest.raises(ClusterAddressError) as caught:
        ClusterAddress.parse(text)
    assert reason in str(caught.value)
    assert "give one like rocketmq://127.0.0.1:9876" in str(caught.value)


def test_name_servers_are_read_as_apache_has_them() -> None:
    expected = ClusterAddress(("ns1:9876", "ns2:9876"))
    assert ClusterAddress.of_name_servers("ns1:9876;ns2:9876") == expected
    assert ClusterAddress.of_name_servers(str(expected)) == expected


def test_a_folder_is_no_cluster() -> None:
    assert not is_cluster_address("rocketmq/store")
    assert is_cluster_address("rocketmq://x")


def test_an_address_travels() -> None:
    address = ClusterAddress.parse("rocketmq://ns1:9876")
    assert pickle.loads(pickle.dumps(address)) == address
