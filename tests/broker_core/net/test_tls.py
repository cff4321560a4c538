"""TLS beside plain text: certificates of files and of one's own, modes, and strangers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_core.local.wire import Wire

from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.net.errors import TlsError
from rocketpy.broker_core.net.self_signed import SelfSigned, self_signed
from rocketpy.broker_core.net.server import TlsMode
from rocketpy.broker_core.net.tls import TlsSettings, server_context
from rocketpy.broker_core.protocol.codes import ResponseCode

HANDSHAKE = 0x16  # the first byte of TLS


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with local_broker(topics={"orders": 1}, tls=True) as broker:
        yield broker


@pytest.fixture
def made(tmp_path: Path) -> SelfSigned:
    made = self_signed()
    (tmp_path / "key.pem").write_text(made.key_pem)
    (tmp_path / "cert.pem").write_text(made.certificate_pem)
    return made


def files(folder: Path) -> dict[str, str]:
    return {
        "tls.server.keyPath": str(folder / "key.pem"),
        "tls.server.certPath": str(folder / "cert.pem"),
    }


def test_tls_and_plain_text_are_served_on_one_port_at_the_same_time(broker: LocalBroker) -> None:
    with (
        Wire(broker.address, tls=True) as secret,
        Wire(broker.address) as plain,
        Wire(broker.address, tls=True) as other,
    ):
        for wire in (secret, plain, other, plain, secret):
            assert wire.send("orders", b"x" * 100_000).code == ResponseCode.SUCCESS
        assert len(other.bodies("orders", 0)) == 5
    for tls in (False, True):
        with Wire(broker.namesrv_addr, tls=tls) as name_server:
            assert broker.address in name_server.route("orders")


def test_requests_over_tls_in_one_piece_are_all_answered(broker: LocalBroker) -> None:
    with Wire(broker.address, tls=True) as wire:
        opaques = [wire.ask(9_999, {}) for _ in range(500)]
        codes = {wire.answer(opaque).code for opaque in opaques}
        assert codes == {ResponseCode.REQUEST_CODE_NOT_SUPPORTED}


def test_what_begins_as_tls_and_is_none_hinders_nobody(broker: LocalBroker) -> None:
    with Wire(broker.address) as wire, Wire(broker.address, tls=True) as other:
        wire.socket.sendall(bytes((HANDSHAKE,)) * 100)
        while wire.socket.recv(100):  # TLS says what it thinks of it, and closes
            pass
        assert other.send("orders", b"served").code == ResponseCode.SUCCESS


def test_who_connects_and_leaves_without_a_byte_hinders_nobody(broker: LocalBroker) -> None:
    host, _, port = broker.address.rpartition(":")
    for _ in range(20):
        socket.create_connection((host, int(port))).close()
    with Wire(broker.address) as wire:
        assert wire.send("orders", b"served").code == ResponseCode.SUCCESS


def test_without_a_certificate_there_is_plain_text_only() -> None:
    with local_broker() as broker, pytest.raises((ssl.SSLError, ConnectionError)):
        Wire(broker.address, tls=True)


@pytest.mark.parametrize("mode", ["enforcing", "disabled"])
def test_other_modes_take_one_kind_of_connections(mode: str) -> None:
    settings = {"tls.server.mode": mode}
    with local_broker(topics=["orders"], tls=True, settings=settings) as broker:
        with Wire(broker.address, tls=mode == "enforcing") as wire:
            assert wire.send("orders", b"one").code == ResponseCode.SUCCESS
        if mode == "disabled":
            with pytest.raises((ssl.SSLError, ConnectionError)):
                Wire(broker.address, tls=True)
        else:
            with Wire(broker.address) as plain, pytest.raises((AssertionError, ConnectionError)):
                plain.send("orders", b"one")


def test_a_client_that_knows_the_certificate_can_verify_it(
    tmp_path: Path, made: SelfSigned
) -> None:
    del made
    with local_broker(settings=files(tmp_path)) as broker:
        host, _, port = broker.address.rpartition(":")
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        with (
            socket.create_connection((host, int(port)), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname=host) as wrapped,
        ):
            assert wrapped.version() == "TLSv1.3"


def test_clients_may_have_to_show_a_certificate(tmp_path: Path, made: SelfSigned) -> None:
    del made
    settings = {
        **files(tmp_path),
        "tls.server.need.client.auth": "require",
        "tls.server.trustCertPath": str(tmp_path / "cert.pem"),
    }
    found = server_context(TlsSettings.parse(settings))
    assert found is not None
    assert found.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tls.server.mode": "maybe"}, "tls.server.mode=maybe: give disabled, permissive"),
        ({"tls.server.mode": "enforcing"}, "give tls.server.certPath and tls.server.keyPath"),
        ({"tls.server.keyPath": "gone.pem"}, "tls.server.certPath=: there is no such file"),
        ({"tls.server.need.client.auth": "yes"}, "give none, optional, require"),
        ({"tls.test.mode.enable": "on"}, "give true, false"),
    ],
)
def test_settings_that_cannot_be_are_told(settings: dict[str, str], text: str) -> None:
    with pytest.raises(TlsError) as caught:
        server_context(TlsSettings.parse(settings))
    assert text in str(caught.value)


def test_a_key_of_another_certificate_is_told(tmp_path: Path, made: SelfSigned) -> None:
    del made
    (tmp_path / "key.pem").write_text(self_signed().key_pem)
    with pytest.raises(TlsError, match="give PEM files that belong together"):
        server_context(TlsSettings.parse(files(tmp_path)))


def test_certificates_to_trust_that_are_missing_are_told(tmp_path: Path, made: SelfSigned) -> None:
    del made
    settings = {**files(tmp_path), "tls.server.need.client.auth": "require"}
    with pytest.raises(TlsError, match="give the certificates by which clients are known"):
        server_context(TlsSettings.parse(settings))


def test_each_certificate_is_another_one_and_openssl_takes_them_all() -> None:
    made = [self_signed() for _ in range(5)]
    assert len({each.key_pem for each in made}) == 5
    for each in made:
        context = ssl.create_default_context(cadata=each.certificate_pem)
        (found,) = context.get_ca_certs()
        assert ("DNS", "localhost") in found["subjectAltName"]
    assert server_context(TlsSettings(mode=TlsMode.DISABLED, is_test=True)) is None
