"""TLS of both clients with servers of ours: what is verified, and what each failure says."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.net.client_tls import ClientTls, TlsFailedError, context_of
from rocketpy.broker_core.net.errors import ServerUnreachableError, TlsError
from rocketpy.broker_core.net.self_signed import SelfSigned, self_signed

Ask = Callable[[str, ClientTls | None], int]


def blocking(address: str, tls: ClientTls | None) -> int:
    with Cluster(address, timeout_s=20, tls=tls) as cluster:
        return len(cluster.route("orders").readable())


def in_a_loop(address: str, tls: ClientTls | None) -> int:
    async def ask() -> int:
        async with rocketpy.aio.connect(address, timeout_s=20, tls=tls or False) as client:
            return len((await client.session.route("orders")).readable())

    return asyncio.run(ask())


def on_the_thread(address: str, tls: ClientTls | None) -> int:
    with rocketpy.connect(address, timeout_s=20, tls=tls or False) as client:
        return len(client.run(lambda inner: inner.session.route("orders")).readable())


@pytest.fixture(params=[blocking, in_a_loop, on_the_thread])
def ask(request: pytest.FixtureRequest) -> Ask:
    found: Ask = request.param
    return found


def write(folder: Path, made: SelfSigned, name: str = "server") -> dict[str, str]:
    (folder / f"{name}-key.pem").write_text(made.key_pem)
    (folder / f"{name}-cert.pem").write_text(made.certificate_pem)
    return {
        "tls.server.keyPath": str(folder / f"{name}-key.pem"),
        "tls.server.certPath": str(folder / f"{name}-cert.pem"),
    }


@contextmanager
def serving(folder: Path, made: SelfSigned, **more: str) -> Iterator[LocalBroker]:
    settings = {**write(folder, made), **more}  # both kinds are taken: brokers register in plain
    with local_broker(topics={"orders": 3}, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[LocalBroker]:
    with serving(folder, self_signed()) as running:
        yield running


def failure(ask: Ask, address: str, tls: ClientTls | None) -> ServerUnreachableError:
    with pytest.raises(ServerUnreachableError) as caught:
        ask(address, tls)
    assert caught.value.address == address
    return caught.value


def test_a_server_is_asked_whose_authority_is_known(
    ask: Ask, server: LocalBroker, folder: Path
) -> None:
    assert ask(server.namesrv_addr, ClientTls(ca=str(folder / "server-cert.pem"))) == 3


def test_messages_are_sent_and_consumed_over_tls(server: LocalBroker, folder: Path) -> None:
    tls = ClientTls(ca=str(folder / "server-cert.pem"))
    with rocketpy.connect(server.namesrv_addr, tls=tls, timeout_s=20) as client:
        sent = client.send("orders", b"secret")
        with client.consumer("readers", "orders", start="earliest") as consumer:
            assert [each.body for each in consumer.poll(30)] == [b"secret"]
        assert [each.name for each in client.admin.topics.all()] == ["orders"]
    assert sent.status == "SEND_OK"


def test_an_authority_that_is_not_known_is_told(ask: Ask, server: LocalBroker) -> None:
    error = failure(ask, server.namesrv_addr, ClientTls())
    assert "comes from an authority that is not trusted" in str(error)
    assert "ClientTls(ca=…)" in str(error)
    assert not error.retriable


def test_without_verification_any_certificate_will_do(ask: Ask, server: LocalBroker) -> None:
    assert ask(server.namesrv_addr, ClientTls(verifies=False)) == 3


def test_a_certificate_of_another_host_is_told(ask: Ask, tmp_path: Path) -> None:
    with serving(tmp_path, self_signed("mq.example", "192.0.2.1")) as server:
        ca = str(tmp_path / "server-cert.pem")
        error = failure(ask, server.namesrv_addr, ClientTls(ca=ca))
        assert "its certificate is one of another host" in str(error)
        assert "brokerIP1" in str(error)
        assert ask(server.namesrv_addr, ClientTls(ca=ca, checks_host=False)) == 3
        strangers = failure(ask, server.namesrv_addr, ClientTls(checks_host=False))
        assert "an authority that is not trusted" in str(strangers)  # only the host is left out


def test_an_expired_certificate_is_told(ask: Ask, tmp_path: Path) -> None:
    with serving(tmp_path, self_signed(life=timedelta(hours=-1))) as server:
        tls = ClientTls(ca=str(tmp_path / "server-cert.pem"))
        assert "its certificate has expired" in str(failure(ask, server.namesrv_addr, tls))


def test_tls_on_a_port_of_plain_text_is_told(ask: Ask) -> None:
    with local_broker(topics={"orders": 3}) as server:
        error = failure(ask, server.namesrv_addr, ClientTls(verifies=False))
        assert "it does not speak TLS on this port; connect without tls" in str(error)


def test_plain_text_on_a_port_of_tls_is_told(ask: Ask, tmp_path: Path) -> None:
    with serving(tmp_path, self_signed(), **{"tls.server.mode": "enforcing"}) as server:
        error = failure(ask, server.namesrv_addr, None)
    assert "if it takes TLS only, connect with tls" in str(error)


def test_an_alert_of_tls_to_plain_text_is_told(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def alert() -> None:
            accepted, _ = listening.accept()
            with accepted:
                accepted.recv(1 << 16)
                accepted.sendall(bytes.fromhex("15030300020246"))  # protocol_version, as OpenSSL's
                accepted.recv(1)

        answering = threading.Thread(target=alert)
        answering.start()
        error = failure(ask, f"127.0.0.1:{listening.getsockname()[1]}", None)
        answering.join()
    assert isinstance(error, TlsFailedError)
    assert "it speaks TLS on this port; connect with tls" in str(error)


def test_a_server_that_wants_a_certificate_is_told_and_gets_one(ask: Ask, tmp_path: Path) -> None:
    write(tmp_path, self_signed(), "client")
    more = {
        "tls.server.need.client.auth": "require",
        "tls.server.trustCertPath": str(tmp_path / "client-cert.pem"),
    }
    with serving(tmp_path, self_signed(), **more) as server:
        ca = str(tmp_path / "server-cert.pem")
        error = failure(ask, server.namesrv_addr, ClientTls(ca=ca))
        assert "wants a certificate of its clients" in str(error)
        assert "ClientTls(certificate=…" in str(error)
        shown = ClientTls(
            ca=ca,
            certificate=str(tmp_path / "client-cert.pem"),
            key=str(tmp_path / "client-key.pem"),
        )
        assert ask(server.namesrv_addr, shown) == 3


def test_a_cluster_with_tls_travels_by_the_paths_of_its_files(
    server: LocalBroker, folder: Path
) -> None:
    tls = ClientTls(ca=str(folder / "server-cert.pem"))
    with pickle.loads(pickle.dumps(Cluster(server.namesrv_addr, tls=tls))) as copy:
        assert len(copy.route("orders").readable()) == 3


def test_a_file_of_apaches_names_says_all(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text(
        "tls.client.trustCertPath=/ca.pem\ntls.client.certPath=/c.pem\ntls.client.keyPath=/k.pem\n"
        "tls.client.keyPassword=geheim-7\ntls.client.checkHost=false\ntls.enable=true\n"
    )
    found = ClientTls.of_environment({"ROCKETPY_TLS": str(file)})
    assert found == ClientTls(
        ca="/ca.pem",
        certificate="/c.pem",
        key="/k.pem",
        key_password="geheim-7",
        checks_host=False,
    )
    assert "geheim-7" not in repr(found)
    assert b"geheim-7" not in pickle.dumps(found)  # a copy reads the file again
    assert pickle.loads(pickle.dumps(found)) == found
    file.write_text("tls.client.authServer=false\n")
    assert ClientTls.of_file(file) == ClientTls(verifies=False)


def test_the_environment_may_say_only_that_it_is_on() -> None:
    assert ClientTls.of_environment({"ROCKETPY_TLS": "on"}) == ClientTls()
    assert ClientTls.of_environment({"ROCKETPY_TLS": "off"}) is None
    assert ClientTls.of_environment({}) is None
    assert context_of(False) is None
    assert context_of(True) is not None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ca": "gone.pem"}, "ca=gone.pem: no authorities can be read there"),
        ({"certificate": "gone.pem"}, "certificate=gone.pem: certificate and key cannot be used"),
        ({"key": "key.pem"}, "key=key.pem: give the certificate that belongs to it"),
    ],
)
def test_files_that_cannot_be_used_are_told(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(TlsError) as caught:
        ClientTls(**fields).context()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("tls.client.checkHost=perhaps", "give true or false"), (r"a=\u12", "no file of properties")],
)
def test_a_file_that_cannot_be_understood_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tls.properties").write_text(text)
    with pytest.raises(TlsError, match=said):
        ClientTls.of_file(tmp_path / "tls.properties")
    with pytest.raises(TlsError, match="cannot be read"):
        ClientTls.of_file(tmp_path / "gone.properties")


def test_a_failure_travels() -> None:
    error = TlsFailedError("127.0.0.1:1", "it is so", "do this")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "127.0.0.1:1: it is so; do this"
