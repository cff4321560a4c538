"""Name servers that die one by one, and come back."""

from __future__ import annotations

import pytest
from tests.broker_core.client.forwarder import Forwarder

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.local import LocalBroker


def test_a_client_sends_while_name_servers_die_one_by_one(fresh: LocalBroker) -> None:
    with (
        Forwarder(fresh.namesrv_addr) as first,
        Forwarder(fresh.namesrv_addr) as second,
        rocketpy.connect(f"{first.address};{second.address}") as mq,
    ):
        mq.send("t", b"1")
        first.close()
        mq.run(lambda client: client.session.route("t", fresh=True))  # the second tells it
        mq.send("t", b"2")
        second.close()
        mq.send("t", b"3")  # by what is known
        with pytest.raises(
            errors.ServerUnreachableError, match=f"{first.address}.*{second.address}"
        ):
            mq.send("other", b"4")
        first.open()
        with pytest.raises(errors.TopicNotFoundError):
            mq.send("other", b"5")


def test_without_name_servers_another_broker_is_tried(fresh: LocalBroker) -> None:
    with (
        Forwarder(fresh.namesrv_addr) as only,
        rocketpy.connect(only.address) as mq,
    ):
        mq.send("t", b"1")
        only.close()
        fresh.kill_broker(0)
        assert {mq.send("t", b"2").broker for _ in range(6)} == {"broker-b"}
