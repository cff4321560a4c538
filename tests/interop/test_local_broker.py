"""Java clients at the broker for tests: TLS beside plain text, resets, and faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker_core.local.wire import Wire
from tests.interop.installation import install
from tests.interop.rocketmq_tool import RocketMqTool

from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.protocol.codes import ResponseCode


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with local_broker(topics={"orders": 1}, tls=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def java(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMqTool]:
    patience = "-Dcom.rocketmq.remoting.client.connect.timeout=30000"  # a cold JVM's TLS is slow
    options = ("-Dtls.enable=true", "-Xmx256m", patience)
    home = tmp_path_factory.mktemp("java")
    tool = RocketMqTool(install().class_path, broker.namesrv_addr, home=home, options=options)
    yield tool
    tool.close()


def test_a_java_client_in_tls_and_one_in_plain_text_share_a_port(
    broker: LocalBroker, java: RocketMqTool
) -> None:
    with Wire(broker.address) as plain:
        assert plain.send("orders", b"plain").code == ResponseCode.SUCCESS
        (receipt,) = java.send("orders", [{"body": b"secret" * 10_000}])
        assert receipt["queueOffset"] == 1
        assert [each["body"] for each in java.pull(["orders"])] == [b"plain", b"secret" * 10_000]
        assert plain.send("orders", b"plain again").code == ResponseCode.SUCCESS
        assert len(plain.bodies("orders", 0)) == 3
        served = broker.brokers[0]._broker
        assert served is not None
        kinds = {connection.is_encrypted for connection in served._server.connections}
        assert kinds == {True, False}


def test_java_clients_go_on_after_a_reset(broker: LocalBroker, java: RocketMqTool) -> None:
    for number in range(3):
        broker.reset()
        (receipt,) = java.send("orders", [{"body": b"%d" % number}])
        assert receipt["queueOffset"] == 0
        (late,) = java.send("made-on-use", [{"body": b"%d" % number, "keys": "k"}])
        assert late["queueOffset"] == 0
        found = java.pull(["orders", "made-on-use"])
        assert [each["body"] for each in found] == [b"%d" % number] * 2


def test_a_java_client_retries_what_a_fault_refuses(
    broker: LocalBroker, java: RocketMqTool
) -> None:
    broker.reset()
    fault = broker.faults.refuse("SEND_MESSAGE_V2", times=2, answer="SYSTEM_BUSY")
    (receipt,) = java.send("orders", [{"body": b"at last"}])
    assert receipt["queueOffset"] == 0
    assert fault.happened == 2
